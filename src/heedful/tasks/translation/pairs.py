"""Token ids of sentence pairs in files that are mapped into memory, not loaded."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.text.tokenizer import Tokenizer

Ids = npt.NDArray[np.unsignedinteger[Any]]

_SIDES = ("source", "target")


def token_dtype(vocabulary_size: int) -> type[np.uint16] | type[np.uint32]:
    """The smallest type that holds the ids of a vocabulary."""
    return np.uint16 if vocabulary_size <= 1 << 16 else np.uint32


class PairsWriter:
    """Writes token ids block by block; only the lengths stay in memory until the end."""

    def __init__(self, folder: Path, vocabulary_size: int) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._dtype = token_dtype(vocabulary_size)
        self._files = [(folder / f"{side}-tokens.bin").open("wb") for side in _SIDES]
        self._lengths: tuple[list[npt.NDArray[np.int32]], ...] = ([], [])
        self.num_pairs = 0
        self.num_tokens = 0

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int32], chosen: npt.NDArray[np.bool_]) -> None:
        """Append the chosen pairs of a block; ids and lengths hold all sources and then all targets."""
        num_sources = len(chosen)
        middle = int(lengths[:num_sources].sum())
        sides = (ids[:middle], lengths[:num_sources]), (ids[middle:], lengths[num_sources:])
        for file, kept, (side_ids, side_lengths) in zip(self._files, self._lengths, sides, strict=True):
            file.write(side_ids[np.repeat(chosen, side_lengths)].astype(self._dtype).tobytes())
            kept.append(side_lengths[chosen])
            self.num_tokens += int(kept[-1].sum())
        self.num_pairs += int(chosen.sum())

    def close(self) -> None:
        """Write the index, after which the folder is complete."""
        for side, file, kept in zip(_SIDES, self._files, self._lengths, strict=True):
            file.close()
            lengths = np.concatenate([np.empty(0, np.int32), *kept])
            np.save(self._folder / f"{side}-lengths.npy", lengths)
            np.save(self._folder / f"{side}-offsets.npy", np.cumsum(lengths, dtype=np.int64) - lengths)


class PreparedPairs:
    """Sentence pairs as ids without start and end tokens; reading one costs no more than a slice."""

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        dtype = token_dtype(tokenizer.vocabulary_size)
        self.source_lengths: npt.NDArray[np.int32] = np.load(folder / "source-lengths.npy")
        self.target_lengths: npt.NDArray[np.int32] = np.load(folder / "target-lengths.npy")
        self._source_tokens, self._target_tokens = (mapped_ids(folder / f"{side}-tokens.bin", dtype) for side in _SIDES)
        self._source_offsets, self._target_offsets = (
            np.asarray(np.load(folder / f"{side}-offsets.npy", mmap_mode="r")) for side in _SIDES
        )

    def __len__(self) -> int:
        return len(self.source_lengths)

    def source(self, index: int) -> Ids:
        """The source ids of a pair."""
        start = self._source_offsets[index]
        return self._source_tokens[start : start + self.source_lengths[index]]

    def target(self, index: int) -> Ids:
        """The target ids of a pair."""
        start = self._target_offsets[index]
        return self._target_tokens[start : start + self.target_lengths[index]]

    def source_text(self, index: int) -> str:
        """The cleaned source line of a pair."""
        return self._tokenizer.decode(self.source(index).tolist())

    def target_text(self, index: int) -> str:
        """The cleaned target line of a pair."""
        return self._tokenizer.decode(self.target(index).tolist())


def mapped_ids(path: Path, dtype: type[np.uint16] | type[np.uint32]) -> Ids:
    """The ids in a file, mapped into memory."""
    if path.stat().st_size == 0:  # nothing to map
        return np.empty(0, dtype)
    # A plain array over the mapped bytes: slicing it costs a tenth of slicing a memmap.
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
