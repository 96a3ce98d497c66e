"""Which pairs are trained on, held out or repeated, decided by content alone."""

from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from heedful.prepared.held_out import PAIRS_SHARE, Keys, content_keys, held_out_keys
from heedful.splitmix import GOLDEN_GAMMA

KEY_DTYPE = np.dtype([("pair", "<u8"), ("source", "<u8"), ("characters", "<u4")])


class Fate(IntEnum):
    """What becomes of a clean pair."""

    TRAIN = 0
    HELD_OUT = 1
    DUPLICATE = 2


def pair_keys(source_keys: Keys, target_keys: Keys) -> Keys:
    """A 64-bit hash of each pair; multiplying distinguishes a pair from the same pair with its sides exchanged."""
    return source_keys * GOLDEN_GAMMA + target_keys


def keys_of_pairs(sources: Iterable[str], targets: Iterable[str]) -> Keys:
    """The hashes of some clean pairs."""
    source_keys, target_keys = (content_keys(text.encode("utf-8") for text in side) for side in (sources, targets))
    return pair_keys(source_keys, target_keys)


def find_duplicates(keys: Keys) -> npt.NDArray[np.bool_]:
    """Which keys occurred before; memory stays at about two numbers per key if few are repeated."""
    ordered = np.sort(keys)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    duplicates = np.zeros(len(keys), dtype=np.bool_)
    if len(repeated):
        nearest = np.minimum(np.searchsorted(repeated, keys), len(repeated) - 1)
        candidates = np.flatnonzero(repeated[nearest] == keys)
        _, first = np.unique(keys[candidates], return_index=True)
        duplicates[candidates] = True
        duplicates[candidates[first]] = False
    return duplicates


def decide_fates(keys: npt.NDArray[np.void], hold_out: bool) -> tuple[npt.NDArray[np.uint8], Keys]:
    """The fate of each clean pair from its keys (an array of KEY_DTYPE), and the keys of held-out sources."""
    duplicates = find_duplicates(keys["pair"])
    fates = np.where(duplicates, Fate.DUPLICATE, Fate.TRAIN).astype(np.uint8)
    if not hold_out:
        return fates, np.empty(0, np.uint64)
    held_out = held_out_keys(keys["source"][~duplicates], PAIRS_SHARE)
    nearest = np.minimum(np.searchsorted(held_out, keys["source"]), len(held_out) - 1)
    fates[(held_out[nearest] == keys["source"]) & ~duplicates] = Fate.HELD_OUT
    return fates, held_out


def read_keys(path: Path) -> npt.NDArray[np.void]:
    """The keys that were written to a file one after another, without loading them all."""
    if path.stat().st_size == 0:
        return np.empty(0, KEY_DTYPE)
    return np.memmap(path, dtype=KEY_DTYPE, mode="r")
