"""Any damage to prepared files is found, and the files are made again as they were."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heedful.tasks.image_classification.data import ImageShape, prepare_images
from heedful.tasks.image_classification.files import ImageFolder
from heedful.tasks.labelling.data import LabelOptions, prepare_labels
from heedful.tasks.labelling.files import LabelledFiles
from heedful.tasks.language_modeling.data import TextOptions, prepare_text
from heedful.tasks.translation.corpus import ParallelCorpus
from heedful.tasks.translation.data import PrepareOptions, prepare_translation
from heedful.text.documents import Documents


def pairs(folder: Path) -> None:
    (folder / "a.tsv").write_text("".join(f"number {n}\tZahl {n}\n" for n in range(60)))
    prepare_translation(ParallelCorpus.from_tsv([str(folder / "a.tsv")]), None, folder / "run", PrepareOptions())


def text(folder: Path) -> None:
    (folder / "a.txt").write_text("".join(f"number {n}\n" for n in range(60)))
    documents = Documents.from_files((str(folder / "a.txt"),), "file", folder / "spooled")
    prepare_text(documents, None, folder / "run", TextOptions(vocabulary_size=300))


def labels(folder: Path) -> None:
    (folder / "a.tsv").write_text("".join(f"{n % 2}\tnumber {n}\n" for n in range(60)))
    files = LabelledFiles.from_patterns((str(folder / "a.tsv"),), "text", folder / "spooled")
    prepare_labels(files, None, folder / "run", LabelOptions(16, 300))


def images(folder: Path) -> None:
    for number in range(40):
        path = folder / "images" / str(number % 2) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((5, 7), number, np.uint8)).save(path)
    prepare_images(ImageFolder.open(str(folder / "images")), None, folder / "run", ImageShape((5, 7), 1))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def first_bit_flipped(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(bytes([content[0] ^ 1]) + content[1:])


def last_bit_flipped(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


DAMAGES = (cut, emptied, first_bit_flipped, last_bit_flipped, Path.unlink)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("prepare", [pairs, text, labels, images])
def test_any_damage_to_any_file_is_found_and_undone(prepare: Callable[[Path], None], tmp_path: Path) -> None:
    prepare(tmp_path)
    prepared, kept = tmp_path / "run" / "prepared", tmp_path / "kept"
    whole = contents(prepared)
    assert len(whole) >= 4
    shutil.copytree(prepared, kept)
    for name in whole:
        for damage in DAMAGES if name.endswith((".bin", "meta.json")) else DAMAGES[-2:]:
            damage(prepared / name)
            prepare(tmp_path)
            assert contents(prepared) == whole, (name, damage)


def test_what_is_whole_is_not_made_again(tmp_path: Path) -> None:
    text(tmp_path)
    before = (tmp_path / "run" / "prepared" / "train.bin").stat()
    text(tmp_path)
    after = (tmp_path / "run" / "prepared" / "train.bin").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("prepare", [pairs, text, labels, images])
def test_all_files_are_on_the_disk_before_they_get_their_name(
    prepare: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    rename, fsync = Path.rename, os.fsync

    def noted_fsync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    missing: list[str] = []

    def noted_rename(self: Path, target: Path) -> Path:
        if self.name == "prepared.partial":
            missing.extend(path.name for path in (self, *self.rglob("*")) if path.stat().st_ino not in synced)
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    prepare(tmp_path)
    assert missing == []
    assert (tmp_path / "run").stat().st_ino in synced  # the name itself
