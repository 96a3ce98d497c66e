"""The sizes of models that are compared, and the floating-point operations that they take."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from benchmarks.speed.corpus import VOCABULARY


@dataclass(frozen=True)
class Size:
    """An encoder-decoder: as many layers in either stack, and one table of embeddings."""

    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int = VOCABULARY

    @property
    def name(self) -> str:
        """How it is called in tables."""
        return f"d={self.width}, {self.layers}+{self.layers}"

    def as_dict(self) -> dict[str, int]:
        """For a driver."""
        return asdict(self)

    def training_flops(self, source_length: int, target_length: int) -> float:
        """Of one pair, forward and backward, in matrix products and attention; no padding counted."""
        d, f, s, t = self.width, self.inner, source_length, target_length
        encoder = s * (4 * d * d + 2 * d * f) + 2 * s * s * d
        # Cross-attention has its keys and values by source token; causal attention needs half of the square.
        decoder = t * (6 * d * d + 2 * d * f) + s * 2 * d * d + t * t * d + 2 * t * s * d
        output = t * d * self.vocabulary
        return 3 * 2 * (self.layers * (encoder + decoder) + output)


TINY = Size(128, 4, 4, 256)
SMALL = Size(256, 4, 4, 1024)
BASE = Size(512, 6, 8, 2048)
SIZES = (TINY, SMALL, BASE)
# So small that nothing measured with it means anything: for trying the programs.
QUICK = Size(32, 1, 2, 64)
