"""The files that hold the weights of a model: one, or numbered shards and an index that says what is in which."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config import read_json, shown
from heedful.errors import UserError
from heedful.files import file_version

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
# Old and new shards take turns with these names, so that the index goes from the old ones to the new in one step.
STEMS = ("model", "model-b")
SHARD = re.compile(rf"(?:{'|'.join(STEMS)})-\d{{5,}}-of-\d{{5,}}\.safetensors", re.ASCII)
# In the metadata of the index, beside `total_size`: the checksum that each shard has in its own header.
CHECKSUMS = "crc32"
# Also there while shards take the place of a single file, or the other way round, and both are in the folder: what
# identifies that file. A folder that holds both without this was put together by hand.
TAKES_PLACE_OF, GIVES_PLACE_TO = "takes_place_of", "gives_place_to"
# The most bytes of a header that are read, whatever a damaged file says.
LONGEST_HEADER = 100_000_000


@dataclass(frozen=True)
class WeightsIndex:
    """What an index says: the file of each tensor, and the checksums of the files, if it has them."""

    places: Mapping[str, str]
    checksums: Mapping[str, str]

    @property
    def files(self) -> list[str]:
        """The names of the shards, in order."""
        return sorted(set(self.places.values()))


def read_index(index: Path) -> WeightsIndex:
    """An index, which may be somebody else's; a UserError if it makes no sense."""
    content = read_json(index)
    places = content.get("weight_map")
    if not isinstance(places, dict) or not places:
        raise UserError(f"{index}: weight_map is {shown(places)}, expected the file of each tensor")
    for tensor, name in places.items():
        # Only a file of this folder itself: an index is data, and must not lead elsewhere.
        plain = isinstance(name, str) and name.isprintable() and "\\" not in name and len(name) < 256
        if not plain or Path(name).name != name or not name.endswith(".safetensors"):
            raise UserError(f"{index}: weight_map puts {shown(tensor)} into {shown(name)}, not a file of this folder")
    checksums = _metadata(content).get(CHECKSUMS, {})
    if not isinstance(checksums, dict) or (checksums and checksums.keys() != set(places.values())):
        raise UserError(f"{index}: its checksums are not those of the files in weight_map")
    return WeightsIndex(places, checksums)


def index_text(shards: Mapping[str, Sequence[str]], checksums: Mapping[str, str], size: int) -> str:
    """The text of an index of shards with these tensors, by their names, and this many bytes of tensors in all."""
    places = {name: file for file, names in shards.items() for name in names}
    metadata = {"total_size": size, CHECKSUMS: dict(sorted(checksums.items()))}
    return json.dumps({"metadata": metadata, "weight_map": dict(sorted(places.items()))}, indent=2) + "\n"


def weights_path(folder: Path) -> Path:
    """The file that a model's weights are known by: the one file, or the index; a UserError if it could be either."""
    index, file = folder / INDEX, folder / WEIGHTS
    if not index.is_file():
        return file
    try:
        found = identity(file)
    except OSError:
        return index
    metadata = _metadata(read_json(index))
    if metadata.get(GIVES_PLACE_TO) == found:
        return file
    if metadata.get(TAKES_PLACE_OF) == found:
        return index
    raise UserError(
        f"{folder} holds two sets of weights, {WEIGHTS} and the files that {INDEX} names: delete the one that does not "
        "belong to the model"
    )


def identity(file: Path) -> str:
    """What identifies a safetensors file: its header, which has the checksum of the whole if heedful wrote it."""
    with file.open("rb") as opened:
        start = opened.read(8)
        return f"{zlib.crc32(opened.read(min(int.from_bytes(start, 'little'), LONGEST_HEADER)), zlib.crc32(start)):08x}"


def marked(text: str, mark: str, file: Path) -> str:
    """An index with the mark that it has while the one file is there too."""
    content = json.loads(text)
    content["metadata"] = {**_metadata(content), mark: identity(file)}
    return json.dumps(content, indent=2) + "\n"


def _metadata(index: Mapping[str, Any]) -> dict[str, Any]:
    found = index.get("metadata")
    return found if isinstance(found, dict) else {}


def weights_files(folder: Path) -> list[Path]:
    """The files with the tensors of a model, whether they are there or not."""
    path = weights_path(folder)
    return [path] if path.name == WEIGHTS else [folder / name for name in read_index(path).files]


def weights_version(folder: Path) -> tuple[tuple[int, int, int], ...]:
    """What distinguishes the weights of a model from others that take their place; empty if a file is gone."""
    try:
        return tuple(file_version(file.stat()) for file in weights_files(folder))
    except OSError:
        return ()


def stale_shards(folder: Path, current: Sequence[str]) -> list[Path]:
    """Shards in a folder that its index does not name."""
    return [each for each in folder.iterdir() if SHARD.fullmatch(each.name) and each.name not in current]
