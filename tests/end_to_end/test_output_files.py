"""A file that cannot be written is named, and nothing is left that looks like a whole one."""

import gzip
import lzma
import os
import shutil
import signal
import subprocess
import sys
import time
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


@linux
@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_open_already_is_not_replaced(small_folders, tmp_path: Path, writer: str) -> None:
    task, arguments = WRITERS[writer]
    command = [sys.executable, "-m", "heedful", writer.partition("-")[0], str(small_folders[task]), *arguments]
    (tmp_path / "kept.txt").write_text("kept\n")
    with (tmp_path / "kept.txt").open("ab") as output:
        result = subprocess.run([*command, "/dev/stdout"], stdout=output, stderr=subprocess.PIPE)
    assert result.returncode == 2 and (tmp_path / "kept.txt").read_text() == "kept\n"
    assert b"/dev/stdout stands for a file that is open already: name the file itself" in result.stderr
    (tmp_path / "link").symlink_to("/dev/stdout")
    # A pipe is written to, under any of its names; 63 is what a shell calls that of >(command).
    subprocess.run([*command, str(tmp_path / "file")], check=True)
    for name in ("/dev/stdout", "/dev/fd/1", str(tmp_path / "link"), "/dev/fd/63"):
        said = subprocess.run(["bash", "-c", '"$@" 63>&1', "bash", *command, name], check=True, capture_output=True)
        assert said.stdout == (tmp_path / "file").read_bytes(), name
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "kept.txt", "link"]


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


@pytest.mark.parametrize(("ending", "unpacked"), [(".gz", gzip.decompress), (".xz", lzma.decompress)])
def test_lines_are_packed_as_the_name_says(run, small_folders, tmp_path: Path, ending: str, unpacked) -> None:
    lines = b"".join(b"red dog %d\n" % number for number in range(311))
    model, place = small_folders["translation"], tmp_path / f"out{ending}"
    options = ["--beam", "1", "--max-length", "3"]
    run("translate", model, *options, "--output", place, stdin=lines)
    assert unpacked(place.read_bytes()) == run("translate", model, *options, stdin=lines).stdout
    run("translate", model, *options, "--input", place, "--output", tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_bytes().count(b"\n") == 311


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals for another process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", 1)])
def test_lines_that_were_finished_outlive_an_interruption(small_folders, tmp_path: Path, number: int) -> None:
    (tmp_path / "in.txt").write_text("red dog\n" * 99 + "".join(f"red dog {each}\n" for each in range(300_000)))
    (tmp_path / "out.txt").write_text("before\n")
    command = [sys.executable, "-m", "heedful", "translate", small_folders["translation"], "--beam", "1"]
    files = ["--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt"]

    def heed() -> None:
        for each in (signal.SIGINT, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)  # shells let what runs in the background ignore them

    with subprocess.Popen([*command, *files], stderr=subprocess.PIPE, preexec_fn=heed) as process:
        end = time.monotonic() + 60
        while not any(each.stat().st_size for each in tmp_path.glob("writing-*/out.txt")):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(60) == 130
        assert process.stderr is not None
        told = process.stderr.read().decode().splitlines()
    assert told[0] == f"heedful: the lines that were finished are in {tmp_path / 'out.txt.unfinished'}"
    assert told[-1] == "heedful: interrupted"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.txt", "out.txt", "out.txt.unfinished"]
    assert (tmp_path / "out.txt").read_text() == "before\n"
    kept = (tmp_path / "out.txt.unfinished").read_text()
    assert kept.endswith("\n") and len(set(kept.splitlines()[:99])) == 1
