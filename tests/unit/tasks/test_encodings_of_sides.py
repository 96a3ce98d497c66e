"""Two sides in different encodings, and encodings that cannot be those of a file."""

from pathlib import Path
from typing import Any

import pytest

from heedful.errors import UserError
from heedful.tasks.labelling.job import ClassifierData
from heedful.tasks.language_modeling.job import TextData
from heedful.tasks.translation.job import TranslationData
from heedful.text.whole_files import read_aligned

ENGLISH = "".join(f"“the dog” {n} — a café\n" for n in range(120))
RUSSIAN = "".join(f"собака {n} и ещё один дом\n" for n in range(120))


def sides(folder: Path, source: str, target: str) -> dict[str, tuple[str, ...]]:
    (folder / "a.en").write_text(ENGLISH, encoding=source)
    (folder / "a.ru").write_text(RUSSIAN, encoding=target)
    return {"source": (str(folder / "a.en"),), "target": (str(folder / "a.ru"),)}


def prepare(job: Any, folder: Path) -> Any:
    job.check()
    folder.mkdir(exist_ok=True)
    return job.prepare(folder, {"vocabulary_size": 300}, lambda *_: None, None)


def test_each_side_has_its_encoding(tmp_path: Path) -> None:
    data = TranslationData(**sides(tmp_path, "utf-8", "cp1251"), target_encoding="windows-1251")
    pairs = prepare(data, tmp_path / "a").data.train
    assert pairs.source_text(0).startswith("“the dog”") and pairs.target(0) is not None
    usual = prepare(TranslationData(**sides(tmp_path, "utf-8", "utf-8")), tmp_path / "b").data.train
    assert [list(pairs.target(n)) for n in range(len(pairs))] == [list(usual.target(n)) for n in range(len(usual))]
    both = TranslationData(**sides(tmp_path, "utf-16", "cp866"), source_encoding="utf-16", encoding="cp866")
    assert len(prepare(both, tmp_path / "c").data.train) == len(usual)


@pytest.mark.parametrize("encoding", ["windows-1251", "koi8-r", "iso-8859-1"])
def test_utf_8_is_not_read_as_an_encoding_of_single_bytes(encoding: str, tmp_path: Path) -> None:
    data = TranslationData(**sides(tmp_path, "utf-8", "cp1251"), encoding=encoding)
    message = rf"a\.en is valid UTF-8, not {encoding}: .* give --target-encoding {encoding}"
    with pytest.raises(UserError, match=message):
        prepare(data, tmp_path / "run")
    with pytest.raises(UserError, match=r"--target-encoding windows-1251"):
        read_aligned(*data.source, *data.target, print, ("windows-1251", "windows-1251"))
    (tmp_path / "a.tsv").write_text("".join(f"{'ab'[n % 2]}\tcafé {n}\n" for n in range(90)), encoding="utf-8")
    for job in (ClassifierData(data=(str(tmp_path / "a.tsv"),), encoding=encoding),):
        with pytest.raises(UserError, match=r"is valid UTF-8, .* leave --encoding out$"):
            prepare(job, tmp_path / "labels")
    with pytest.raises(UserError, match="is valid UTF-8"):
        prepare(TextData(text=(str(tmp_path / "a.tsv"),), encoding=encoding), tmp_path / "text")


def test_plain_ascii_may_be_read_as_anything(tmp_path: Path) -> None:
    files = sides(tmp_path, "utf-8", "cp1251")
    (tmp_path / "a.en").write_text(ENGLISH.encode("ascii", "ignore").decode())
    assert prepare(TranslationData(**files, encoding="windows-1251"), tmp_path / "run")


def test_the_advice_names_the_option_that_helps(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.ru: .* not valid UTF-8.*: give --target-encoding "):
        prepare(TranslationData(**sides(tmp_path, "utf-8", "cp1251")), tmp_path / "run")
    with pytest.raises(UserError, match=r"a\.en: .* not valid UTF-8.*: give --encoding "):
        prepare(TranslationData(**sides(tmp_path, "cp1252", "cp1251")), tmp_path / "run")


def test_encodings_of_sides_are_checked(tmp_path: Path) -> None:
    files = sides(tmp_path, "utf-8", "cp1251")
    with pytest.raises(UserError, match="--target-encoding 'windows-1521' is not the name"):
        TranslationData(**files, target_encoding="windows-1521").check()
    with pytest.raises(UserError, match="for --source and --target"):
        TranslationData(tsv=files["source"], target_encoding="cp1251").check()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_an_encoding_whose_order_only_a_mark_tells_needs_the_mark(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(RUSSIAN.encode(f"{encoding}-le"))
    with pytest.raises(UserError, match=f"has no byte order mark.*give --encoding {encoding}-le or {encoding}-be"):
        prepare(TextData(text=(str(tmp_path / "a.txt"),), encoding=encoding), tmp_path / "run")
    assert prepare(TextData(text=(str(tmp_path / "a.txt"),), encoding=f"{encoding}-le"), tmp_path / "run")


def test_carriage_returns_alone_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_bytes(b"one\rtwo\rthree\r")
    (tmp_path / "a.ru").write_bytes(b"one\rtwo\rthree\r")
    data = TranslationData(source=(str(tmp_path / "a.en"),), target=(str(tmp_path / "a.ru"),))
    with pytest.raises(UserError, match=r"a\.en is one line, with 3 carriage returns in it: .* tr '\\r' '\\n'"):
        prepare(data, tmp_path / "run")
