"""A target of atheris: model folders of before with damaged settings and weights load, or are a UserError.

python core/fuzz/loader.py SEEDS [OPTIONS OF LIBFUZZER]
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.weights_index import INDEX, WEIGHTS, index_text
from heedful.weights_seal import BLANK, OWN

FOLDERS = Path(__file__).parents[2] / "tests" / "fixtures" / "written_before"
FAMILIES = ("translation", "language_model", "classifier", "masked", "tagger")
# From this byte on, the weights lie in two files.
IN_SHARDS = 224
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2,
    3,
    17,
    2**24,
    2**31 - 1,
    2**31,
    2**63,
    2**64 + 1,
    1e308,
    0.5,
    float("nan"),
]
VALUES += [
    "",
    "x",
    "F16",
    "BF16",
    "F64",
    "F32",
    "\x00",
    "\ud800",
    "learned",
    "rotary",
    [],
    [0],
    [1],
    [[]],
    {},
    {"x": 1},
]


@dataclass
class Damage:
    """Bytes that say what is changed."""

    data: bytes
    place: int = 0

    def byte(self) -> int:
        self.place += 1
        return self.data[self.place - 1] if self.place <= len(self.data) else 0

    def below(self, limit: int) -> int:
        return (self.byte() << 8 | self.byte()) % limit

    @property
    def left(self) -> bool:
        return self.place < len(self.data)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in nested data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def change_value(damage: Damage, text: bytes) -> bytes:
    """JSON with one value replaced, removed or under another name."""
    data = json.loads(text)
    found = list(places(data))
    if not found:
        return text
    *inner, last = found[damage.below(len(found))]
    target = data
    for key in inner:
        target = target[key]
    kind = damage.byte() % 8
    if kind == 0:
        del target[last]
    elif kind == 1 and isinstance(target, dict):
        target[last + VALUES[16 + damage.byte() % 8]] = target.pop(last)
    elif kind == 2 and isinstance(target[last], int):
        target[last] += damage.byte() - 128
    else:
        target[last] = VALUES[damage.byte() % len(VALUES)]
    return json.dumps(data).encode()


def change_bytes(damage: Damage, content: bytes) -> bytes:
    """Bytes with some of them replaced by others, more or fewer."""
    begin = damage.below(len(content) + 1)
    return (
        content[:begin] + bytes(damage.byte() for _ in range(damage.byte() % 5)) + content[begin + damage.byte() % 5 :]
    )


@dataclass
class Stored:
    """The parts of a safetensors file, and how many bytes longer it says that its header is."""

    header: bytes
    numbers: bytes
    said: int = 0

    @classmethod
    def of(cls, content: bytes) -> Stored:
        size = int.from_bytes(content[:8], "little")
        return cls(content[8 : 8 + size], content[8 + size :])

    def content(self) -> bytes:
        return (len(self.header) + self.said).to_bytes(8, "little") + self.header + self.numbers

    def change(self, damage: Damage, kind: int) -> None:
        if kind < 5:
            self.header = change_value(damage, self.header)
        elif kind == 6:
            self.header = change_bytes(damage, self.header)
        elif damage.byte() % 2:
            self.numbers = change_bytes(damage, self.numbers)
        else:
            self.said = damage.below(2**16)


def spread(content: bytes, checksum: dict[str, str]) -> tuple[dict[str, Stored], bytes]:
    """The tensors of a file in two shards, which have that checksum, and their index."""
    whole = Stored.of(content)
    header = json.loads(whole.header)
    metadata = header.pop("__metadata__", {})
    shards: dict[str, Stored] = {}
    places: dict[str, list[str]] = {}
    for number in (0, 1):
        name = f"model-{number + 1:05d}-of-00002.safetensors"
        places[name] = sorted(header)[number::2]
        entries, numbers = {"__metadata__": metadata | checksum}, b""
        for tensor in places[name]:
            begin, end = header[tensor]["data_offsets"]
            entries[tensor] = header[tensor] | {"data_offsets": [len(numbers), len(numbers) + end - begin]}
            numbers += whole.numbers[begin:end]
        shards[name] = Stored(json.dumps(entries).encode(), numbers)
    return shards, index_text(places, dict.fromkeys(shards, BLANK) if checksum else {}, len(whole.numbers)).encode()


def damaged(damage: Damage, folder: Path, form: int) -> dict[str, bytes]:
    """Other contents for a folder's config.json and its weights, by the names of files."""
    config, weights = (folder / "config.json").read_bytes(), (folder / WEIGHTS).read_bytes()
    in_shards, checksum = form >= IN_SHARDS, {OWN: BLANK} if form % 4 >= 2 else {}
    stored, index = spread(weights, checksum) if in_shards else ({WEIGHTS: Stored.of(weights)}, b"{}")
    while damage.left:
        kind = damage.byte() % 8
        name = sorted(stored)[damage.byte() % 2] if in_shards else WEIGHTS
        try:
            if kind == 2 and in_shards:
                index = change_value(damage, index)
            elif kind < 3:
                config = change_value(damage, config)
            elif kind == 5:
                config = change_bytes(damage, config)
            else:
                stored[name].change(damage, kind)
        except ValueError:  # no longer JSON
            continue
    files = {"config.json": config, **{name: each.content() for name, each in stored.items()}}
    return files | ({INDEX: index} if in_shards else {})


def check(data: bytes, folders: Path) -> None:
    """Load what comes of some bytes, and compute with it; anything but success or a UserError is raised."""
    from heedful.core.model import CoreModel, runs_family
    from heedful.core.sequences import encode, score_targets
    from heedful.errors import UserError
    from heedful.model_folder import check_model_folder

    damage = Damage(data)
    original = folders / FAMILIES[damage.byte() % len(FAMILIES)]
    form, max_length = damage.byte(), (None, None, 1, 37)[damage.byte() % 4]
    folder = folders / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in damaged(damage, original, form).items():
        (folder / name).write_bytes(content)
    (folder / "tokenizer.json").touch()
    try:
        settings = check_model_folder(folder)
        if not runs_family(settings.family):
            return
        model = CoreModel(folder, settings.family, settings.model, int8=form % 2 == 1, max_length=max_length)
        model.threads = 1
        if settings.family == "encoder_only":
            encode(model, [[0]], None, pooling=1, head=False, width=settings.model.width)
        else:
            score_targets(model, [[0]], [[0]])
    except UserError:
        return


def unpack(place: Path) -> None:
    """The model folders, each under its name."""
    for name in FAMILIES:
        with tarfile.open(FOLDERS / f"{name}.tar.xz") as archive:
            for file in ("config.json", "model.safetensors"):
                archive.extract(f"finished/{file}", place, filter="data")
        (place / "finished").rename(place / name)


def main() -> None:
    """Fuzz as the arguments say."""
    import atheris

    with atheris.instrument_imports(
        include=["heedful.config", "heedful.core", "heedful.model_folder", "heedful.settings", "heedful.weights_index"]
    ):
        import heedful.core.sequences
        import heedful.model_folder  # noqa: F401
    with tempfile.TemporaryDirectory() as folder:
        unpack(Path(folder))
        atheris.Setup(sys.argv, lambda data: check(data, Path(folder)))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
