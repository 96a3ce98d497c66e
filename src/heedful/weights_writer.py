"""The weights of a model on their way to the disk, one tensor at a time: into one file, or into numbered shards."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.errors import UserError
from heedful.files import flush_folder, flush_to_disk, remove, replacing_our_own, write_file
from heedful.storage import TEMPORARY, writing
from heedful.weights_index import (
    GIVES_PLACE_TO,
    INDEX,
    STEMS,
    TAKES_PLACE_OF,
    WEIGHTS,
    index_text,
    marked,
    read_index,
    stale_shards,
    weights_files,
)
from heedful.weights_seal import seal

if TYPE_CHECKING:
    from torch import Tensor

# The largest file that weights are written into, as Hugging Face has it; a tensor that is larger gets one of its own.
SHARD_BYTES = 5_000_000_000
LARGEST_SHARD = 2**62
# Bytes of a number of each type; the larger ones come first in a file.
SIZES = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2}


@dataclass(frozen=True)
class TensorKind:
    """The type and the shape of a tensor that is still to come."""

    kind: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Its bytes."""
        return math.prod(self.shape) * SIZES[self.kind]


@dataclass(frozen=True)
class WeightStream:
    """Weights that need not be in memory together: what they are, by name, and the tensors one after the other."""

    kinds: Mapping[str, TensorKind]
    tensors: Iterable[tuple[str, Tensor]]

    @property
    def size(self) -> int:
        """The bytes of all of them."""
        return sum(each.size for each in self.kinds.values())

    def drain(self) -> None:
        """Take the remaining tensors: where several processes give them, each must take them all."""
        for _ in self.tensors:
            pass


def kind_of(tensor: Tensor) -> TensorKind:
    """What a tensor is."""
    names = {"float64": "F64", "float32": "F32", "bfloat16": "BF16", "float16": "F16"}
    return TensorKind(names[str(tensor.dtype).removeprefix("torch.")], tuple(tensor.shape))


def stream_of(tensors: Mapping[str, Tensor]) -> WeightStream:
    """Tensors that are in memory."""
    return WeightStream({name: kind_of(tensor) for name, tensor in tensors.items()}, tensors.items())


def write_weights_file(path: Path, weights: WeightStream, metadata: Mapping[str, str]) -> None:
    """Replace a file of weights in one step; the metadata are those of `unsealed`."""
    with replacing_our_own(path, weights.size) as temporary:
        _write(weights, {temporary: list(weights.kinds)}, metadata)
        seal(temporary)
        _announce(temporary, path)


def write_weights(folder: Path, weights: WeightStream, metadata: Mapping[str, str], limit: int = SHARD_BYTES) -> None:
    """Replace the weights in a model folder in one step, with files of at most `limit` bytes of tensors."""
    groups = split(weights.kinds, limit)
    if len(groups) > 1:
        _write_shards(folder, groups, weights, metadata)
        return
    write_weights_file(folder / WEIGHTS, weights, metadata)
    (folder / INDEX).unlink(missing_ok=True)
    _tidy(folder, [])


def split(kinds: Mapping[str, TensorKind], limit: int) -> list[list[str]]:
    """The names of tensors, in their order, in groups no larger than a limit, unless a group is a single tensor."""
    groups: list[list[str]] = [[]]
    room = limit
    for name, tensor in kinds.items():
        if groups[-1] and tensor.size > room:
            groups.append([])
            room = limit
        groups[-1].append(name)
        room -= tensor.size
    return groups


def _write_shards(
    folder: Path, groups: Sequence[Sequence[str]], weights: WeightStream, metadata: Mapping[str, str]
) -> None:
    """Write all shards under names other than the current ones; the index then changes from these to them."""
    place = folder / f"{TEMPORARY}{WEIGHTS}"
    with writing(folder / WEIGHTS, weights.size):
        remove(place)
        place.mkdir()
        try:
            names = _free_names(folder, len(groups))
            shards = dict(zip(names, groups, strict=True))
            _write(weights, {place / name: group for name, group in shards.items()}, metadata)
            checksums = {name: seal(place / name) for name in names}
            put_shards(place, folder, shards, checksums, weights.size)
        finally:
            with suppress(OSError):
                remove(place)


def put_shards(
    place: Path, folder: Path, shards: Mapping[str, Sequence[str]], checksums: Mapping[str, str], size: int
) -> None:
    """Move shards, whose names must be free, from another place into a folder, and make them its weights."""
    before = next((each.stat().st_mode & 0o7777 for each in _current(folder) if each.is_file()), None)
    for name in shards:
        if before is not None:
            (place / name).chmod(before)
        flush_to_disk(place / name)
        (place / name).replace(folder / name)
    flush_folder(folder)
    text, before_shards = index_text(shards, checksums, size), folder / WEIGHTS
    if before_shards.is_file():
        write_file(folder / INDEX, marked(text, TAKES_PLACE_OF, before_shards))
        before_shards.unlink()
    write_file(folder / INDEX, text)
    _tidy(folder, list(shards))


def move_weights(place: Path, folder: Path) -> None:
    """Make the weights of one model folder, on the same disk, those of another, in one step."""
    if not (place / INDEX).is_file():
        _announce(place / WEIGHTS, folder / WEIGHTS)
        (place / WEIGHTS).replace(folder / WEIGHTS)
        (folder / INDEX).unlink(missing_ok=True)
        _tidy(folder, [])
        return
    index = read_index(place / INDEX)
    names = dict(zip(index.files, _free_names(folder, len(index.files)), strict=True))
    shards: dict[str, list[str]] = {name: [] for name in names.values()}
    for tensor, old in index.places.items():
        shards[names[old]].append(tensor)
    for old, new in names.items():
        (place / old).rename(place / new)
    size = json.loads((place / INDEX).read_text(encoding="utf-8"))["metadata"]["total_size"]
    put_shards(place, folder, shards, {names[old]: each for old, each in index.checksums.items()}, size)


def _announce(new: Path, path: Path) -> None:
    """Let an index of shards say that a new file is about to take their place."""
    index = path.with_name(INDEX)
    if path.name == WEIGHTS and index.is_file():
        write_file(index, marked(index.read_text(encoding="utf-8"), GIVES_PLACE_TO, new))


def _free_names(folder: Path, count: int) -> list[str]:
    """Names for shards, none of which belongs to the weights that the folder has now."""
    current = {each.name for each in _current(folder)}
    for stem in STEMS:
        names = [f"{stem}-{number:05d}-of-{count:05d}.safetensors" for number in range(1, count + 1)]
        if current.isdisjoint(names):
            return names
    raise AssertionError(current)


def _current(folder: Path) -> list[Path]:
    """The files that the weights of a folder are in now; none if it has an index that cannot be read."""
    try:
        return weights_files(folder)
    except UserError:
        return []


def _tidy(folder: Path, current: Sequence[str]) -> None:
    """Remove the shards of earlier weights, and what a kill left of others."""
    for old in stale_shards(folder, current):
        with suppress(OSError):
            old.unlink()


def _write(weights: WeightStream, files: Mapping[Path, Sequence[str]], metadata: Mapping[str, str]) -> None:
    """Write tensors into files, as they come, each to its place."""
    import torch

    begun = {file: _begin(file, weights, names, metadata) for file, names in files.items()}
    places = {name: (file, begin) for file, begins in begun.items() for name, begin in begins}
    for name, tensor in weights.tensors:
        file, begin = places.pop(name)
        assert kind_of(tensor) == weights.kinds[name], name
        content = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        with file.open("r+b") as opened:
            opened.seek(begin)
            opened.write(content.data)
    assert not places, sorted(places)


def _begin(
    file: Path, weights: WeightStream, names: Sequence[str], metadata: Mapping[str, str]
) -> list[tuple[str, int]]:
    """Write the header of a safetensors file, and return the place of each tensor."""
    order = list(SIZES)
    header: dict[str, object] = {"__metadata__": dict(sorted(metadata.items()))}
    end, begins = 0, []
    for name in sorted(names, key=lambda each: (order.index(weights.kinds[each].kind), each)):
        tensor = weights.kinds[name]
        header[name] = {"dtype": tensor.kind, "shape": tensor.shape, "data_offsets": [end, end + tensor.size]}
        begins.append((name, end))
        end += tensor.size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text = text.ljust(-(-len(text) // 8) * 8)  # tensors begin at a multiple of 8
    with file.open("wb") as opened:
        opened.write(len(text).to_bytes(8, "little") + text)
        opened.truncate(8 + len(text) + end)
    return [(name, 8 + len(text) + begin) for name, begin in begins]
