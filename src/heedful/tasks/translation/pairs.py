"""Token ids of sentence pairs, in files that are mapped into memory, not loaded."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from heedful.prepared.ragged import Numbers, Ragged, RaggedFiles, RaggedWriter, token_dtype
from heedful.text.tokenizer import Tokenizer


def _files(folder: Path, side: str) -> RaggedFiles:
    return RaggedFiles(*(folder / f"{side}-{name}" for name in ("tokens.bin", "lengths.npy", "offsets.npy")))


class PairsWriter:
    """Writes the token ids of sentence pairs block by block."""

    def __init__(self, folder: Path, vocabulary_size: int) -> None:
        folder.mkdir(parents=True)
        dtype = token_dtype(vocabulary_size)
        self._sources, self._targets = (RaggedWriter(_files(folder, side), dtype) for side in ("source", "target"))

    @property
    def num_pairs(self) -> int:
        """The number of pairs written."""
        return len(self._sources)

    @property
    def num_tokens(self) -> int:
        """The number of tokens written, on both sides."""
        return self._sources.numbers + self._targets.numbers

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int32], chosen: npt.NDArray[np.bool_]) -> None:
        """Append the chosen pairs of a block; ids and lengths hold all sources and then all targets."""
        num_sources = len(chosen)
        middle = int(lengths[:num_sources].sum())
        self._write_side(self._sources, ids[:middle], lengths[:num_sources], chosen)
        self._write_side(self._targets, ids[middle:], lengths[num_sources:], chosen)

    @staticmethod
    def _write_side(
        writer: RaggedWriter,
        ids: npt.NDArray[np.uint32],
        lengths: npt.NDArray[np.int32],
        chosen: npt.NDArray[np.bool_],
    ) -> None:
        writer.add_block(ids[np.repeat(chosen, lengths)], lengths[chosen])

    def close(self) -> None:
        """Write the index, which completes the folder."""
        self._sources.close()
        self._targets.close()


class PreparedPairs:
    """Sentence pairs as ids without start and end tokens."""

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        dtype = token_dtype(tokenizer.vocabulary_size)
        self._sources, self._targets = (Ragged(_files(folder, side), dtype) for side in ("source", "target"))
        self.source_lengths, self.target_lengths = self._sources.lengths, self._targets.lengths

    def __len__(self) -> int:
        return len(self._sources)

    def source(self, index: int) -> Numbers:
        """The source ids of a pair."""
        return self._sources[index]

    def target(self, index: int) -> Numbers:
        """The target ids of a pair."""
        return self._targets[index]

    def source_text(self, index: int) -> str:
        """The cleaned source line of a pair."""
        return self._tokenizer.decode(self.source(index).tolist())

    def target_text(self, index: int) -> str:
        """The cleaned target line of a pair."""
        return self._tokenizer.decode(self.target(index).tolist())
