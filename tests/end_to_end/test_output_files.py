"""A file that cannot be written is named, and nothing is left that looks like a whole one."""

import shutil
import sys
from pathlib import Path

import pytest

WRITERS = {
    "translate": ("translation", ["red dog", "--output"]),
    "embed": ("encoder", ["red dog", "--out"]),
    "inspect": ("translation", ["red dog", "--out"]),
    "inspect-json": ("translation", ["red dog", "--json", "--out"]),
}
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/dev/full is of Linux")


def refused(run, folders, writer: str, place: str | Path) -> str:
    task, arguments = WRITERS[writer]
    result = run(writer.partition("-")[0], folders[task], *arguments, place, code=2)
    assert result.stdout == b"" and result.stderr.count(b"\n") == 1
    return result.stderr.decode()


@linux
@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk(run, small_folders, tmp_path: Path, writer: str) -> None:
    (tmp_path / "link").symlink_to("/dev/full")
    for place in ("/dev/full", tmp_path / "link"):
        told = refused(run, small_folders, writer, place)
        assert told.startswith("heedful: cannot write /dev/full: the disk is full")


@pytest.mark.parametrize("writer", WRITERS)
def test_names_that_are_not_of_files(run, small_folders, tmp_path: Path, writer: str) -> None:
    (tmp_path / "file").write_text("kept")
    option = "--output" if writer == "translate" else "--out"
    assert f"{option} {tmp_path} is the name of a folder" in refused(run, small_folders, writer, tmp_path)
    assert f"{option} {tmp_path}/new/ is the name of a folder" in refused(
        run, small_folders, writer, f"{tmp_path}/new/"
    )
    assert f"{option} is empty: name a file" in refused(run, small_folders, writer, "")
    assert f"{option} is -, which is not the name of a file" in refused(run, small_folders, writer, "-")
    assert f"there is no folder {tmp_path / 'no'}" in refused(run, small_folders, writer, tmp_path / "no" / "x")
    assert str(tmp_path / "file" / "x") in refused(run, small_folders, writer, tmp_path / "file" / "x")
    assert [each.name for each in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "kept"


@linux
@pytest.mark.parametrize("verb", ["import", "export", "train"])
def test_folders_that_cannot_be_made(run, small_folders, tmp_path: Path, verb: str) -> None:
    (tmp_path / "file").write_text("red dog\n" * 50)
    place = tmp_path / "file" / "model"
    command = {
        "import": ["import", small_folders["translation"], place],
        "export": ["export", small_folders["translation"], "--to", "ctranslate2", place],
        "train": ["train", "language-model", "--text", tmp_path / "file", "--steps", "1", "--out", place],
    }[verb]
    told = run(*command, code=2).stderr.decode().splitlines()[-1]
    assert told.startswith("heedful: ") and (str(place) in told or verb == "import")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@linux
@pytest.mark.parametrize("verb", ["translate", "embed", "classify", "tag", "generate", "fill", "score"])
def test_standard_output_is_named_where_it_is_what_fails(run_on, small_folders, tmp_path: Path, verb: str) -> None:
    tasks = {"embed": "encoder", "classify": "classification", "tag": "tagging", "generate": "language_model"}
    task = {**tasks, "fill": "masked_language_model"}.get(verb, "translation")
    text = {"fill": "red [MASK]", "score": "red\tdog"}.get(verb, "red dog")
    files = ["/dev/null", "/dev/full", str(tmp_path / "errors")]
    assert run_on([verb, str(small_folders[task]), text], files, str(tmp_path)) == 2
    told = (tmp_path / "errors").read_text()
    assert told.startswith("heedful: cannot write /dev/full: the disk is full") and told.count("\n") == 1


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_files_of_a_model_are_not_replaced(run, small_folders, tmp_path: Path, name: str) -> None:
    model = tmp_path / "model"
    shutil.copytree(small_folders["translation"], model)
    (tmp_path / "link").symlink_to(model / name)
    before = (model / name).read_bytes()
    for place in (model / name, tmp_path / "link"):
        result = run("translate", model, "red dog", "--output", place, code=2)
        assert f"--output {place} would replace a file of the model in {model}" in result.stderr.decode()
    assert (model / name).read_bytes() == before


def test_a_file_that_is_not_regular_is_not_called_missing(run, small_folders, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(small_folders["translation"], model)
    (model / "tokenizer.json").unlink()
    (model / "tokenizer.json").mkdir()
    told = run("translate", model, "red dog", code=2).stderr.decode()
    assert "tokenizer.json is not a regular file" in told and told.count("\n") == 1
