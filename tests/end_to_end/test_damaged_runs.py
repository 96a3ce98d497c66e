"""A run whose files were damaged, or whose disk is full, goes on from what is whole, or says what to do."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heedful.cli.main import main

pytestmark = pytest.mark.slow

STEPS = 6
NEWEST, OLDER = (f"run/checkpoints/step-{step:09d}" for step in (STEPS, STEPS - 1))
STACK = "{num_layers=1, dropout=0.1, attention={num_heads=2}, feed_forward={inner_width=32}}"
TIMES = ("seconds", "elapsed")


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory, make_sentences) -> list[str | Path]:
    """A command for a small run, all but its --out."""
    file = tmp_path_factory.mktemp("damage") / "pairs.tsv"
    file.write_text("".join(f"{line}\t{line.upper()}\n" for line in make_sentences(200, seed=5)))
    settings = ["model.width=16", f"model.encoder={STACK}", f"model.decoder={STACK}", "training.machine.workers=1"]
    settings += ["training.batches={tokens_per_step=400, tokens_per_batch=400}", "training.ema_decay=0.9"]
    settings += ["training.saving={validations=1, checkpoint_seconds=0.0}"]
    sets = [f"--set={each}" for each in settings]
    return ["train", "translation", "--tsv", file, *sets, "--steps", str(STEPS), "--out"]


@pytest.fixture(scope="module")
def whole(arguments, run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that came to its end."""
    out = tmp_path_factory.mktemp("whole") / "out"
    run(*arguments, out)
    return out


@pytest.fixture
def broken(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, without the model, which the last step gives again."""
    shutil.copytree(whole, tmp_path / "out")
    (tmp_path / "out" / "model.safetensors").unlink()
    return tmp_path / "out"


def metrics(out: Path) -> list[dict]:
    rows = [json.loads(line) for line in (out / "run" / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


def assert_same_end(out: Path, whole: Path) -> None:
    names = ("model.safetensors", *(f"{NEWEST}/{name}.safetensors" for name in ("model", "optimizer", "average")))
    for name in names:
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    assert metrics(out) == metrics(whole)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def flip(file: Path) -> None:
    """Change bits in the middle: still a file that can be parsed."""
    content = bytearray(file.read_bytes())
    content[len(content) * 3 // 4] ^= 0x55
    file.write_bytes(content)


def absurd(file: Path) -> None:
    """A step that no run comes to, in a checkpoint as an earlier version wrote it: without checksums."""
    (file.parent / "checksums.json").unlink(missing_ok=True)
    state = json.loads(file.read_text())
    file.write_text(json.dumps({**state, "position": {"step": 1e99, "epoch": -5, "batch": "1"}}))


def bad_line(file: Path) -> None:
    """Spoil the row of the last training step."""
    lines = file.read_text().splitlines()
    place = max(number for number, line in enumerate(lines) if '"train"' in line)
    lines[place] = '{"kind": "train", "st\0ep"'
    file.write_text("".join(line + "\n" for line in lines))


DAMAGE = {
    "weights cut": (f"{NEWEST}/model.safetensors", cut),
    "optimizer flipped": (f"{NEWEST}/optimizer.safetensors", flip),
    "average missing": (f"{NEWEST}/average.safetensors", Path.unlink),
    "state empty": (f"{NEWEST}/state.json", empty),
    "state absurd": (f"{NEWEST}/state.json", absurd),
    "line of the metrics": ("run/metrics.jsonl", bad_line),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_after_damage_an_older_checkpoint_leads_to_the_same_end(name, arguments, whole, broken, run) -> None:
    file, damage = DAMAGE[name]
    damage(broken / file)
    text = run(*arguments, broken).stderr.decode()
    told = [line for line in text.splitlines() if "damaged" in line]
    assert len(told) == 1, text
    assert Path(NEWEST).name in told[0] and f"continuing from {Path(OLDER).name}" in told[0]
    assert f"continuing after step {STEPS - 1}" in text
    assert_same_end(broken, whole)


def test_when_all_are_damaged_one_line_says_what_to_do(arguments, whole, broken, run) -> None:
    flip(broken / NEWEST / "model.safetensors")
    empty(broken / OLDER / "state.json")
    result = run(*arguments, broken, code=2)
    last = result.stderr.decode().splitlines()[-1]
    assert last.startswith("heedful: ") and "damaged" in last
    assert f"delete {broken / 'run' / 'checkpoints'}" in last
    shutil.rmtree(broken / "run" / "checkpoints")
    run(*arguments, broken)
    assert_same_end(broken, whole)


def test_metrics_that_no_checkpoint_can_make_whole_again_do_not_stop_a_run(arguments, whole, broken, run) -> None:
    shutil.rmtree(broken / NEWEST)
    file = broken / "run" / "metrics.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(["{spoilt\n", *lines[1:]]))
    text = run(*arguments, broken).stderr.decode()
    assert f"{file} is damaged" in text and f"continuing from {Path(OLDER).name}" in text
    assert metrics(broken) == metrics(whole)[1:]
    assert (broken / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_a_checkpoint_without_checksums_still_loads(arguments, whole, broken, run) -> None:
    shutil.rmtree(broken / NEWEST)
    (broken / OLDER / "checksums.json").unlink(missing_ok=True)
    state = json.loads((broken / OLDER / "state.json").read_text())
    state.pop("metrics", None)
    (broken / OLDER / "state.json").write_text(json.dumps(state))
    text = run(*arguments, broken).stderr.decode()
    assert f"continuing after step {STEPS - 1}" in text and "damaged" not in text
    assert_same_end(broken, whole)


@pytest.mark.parametrize("damage", [cut, Path.unlink], ids=["cut", "gone"])
def test_the_model_of_a_finished_run_is_written_again(damage, arguments, whole, tmp_path: Path, run) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    damage(out / "model.safetensors")
    text = run(*arguments, out).stderr.decode()
    assert "model.safetensors" in text and "written again from the last checkpoint" in text
    assert_same_end(out, whole)


def test_names_that_are_no_checkpoints_are_ignored(arguments, whole, broken, run) -> None:
    checkpoints = broken / "run" / "checkpoints"
    shutil.copytree(broken / NEWEST, checkpoints / f"{Path(NEWEST).name}-backup")
    shutil.rmtree(broken / NEWEST)
    (checkpoints / "step-").mkdir()
    (checkpoints / "step-old").mkdir()
    (checkpoints / "step-000000099").write_text("a file")
    run(*arguments, broken)
    assert_same_end(broken, whole)
    kept = {each.name for each in checkpoints.iterdir()}
    assert {f"{Path(NEWEST).name}-backup", "step-old", "step-000000099", Path(NEWEST).name} <= kept
    run("inspect", broken, "--training", "--out", broken.parent / "page.html")
    assert '"finished"' in (broken.parent / "page.html").read_text()


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"saved": 5, "requested": {}}', '{"saved": {"resolved": []}, "requested": []}']
)
def test_absurd_settings_of_a_run_are_one_line(arguments, broken, capsys, content: str) -> None:
    (broken / "run" / "config.json").write_text(content)
    with pytest.raises(SystemExit, match="2"):
        main([*map(str, arguments), str(broken)])
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("heedful: ") and "config.json" in last


@pytest.mark.parametrize("name", ["metrics.jsonl", "lock", "checkpoints", "config.json"])
def test_a_folder_in_place_of_a_file_or_the_other_way_round_is_one_line(arguments, broken, capsys, name: str) -> None:
    place = broken / "run" / name
    if place.is_dir():
        shutil.rmtree(place)
        place.write_text("no folder")
    else:
        place.unlink(missing_ok=True)
        place.mkdir()
    with pytest.raises(SystemExit, match="2"):
        main([*map(str, arguments), str(broken)])
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("heedful: ") and name in last


def test_two_runs_in_one_folder_are_refused_by_whatever_name(arguments, whole, run, tmp_path: Path) -> None:
    import filelock

    (tmp_path / "link").symlink_to(whole)
    with filelock.FileLock(whole / "run" / "lock"):  # as a run holds it
        for out in (whole, tmp_path / "link"):
            last = run(*arguments, out, code=2).stderr.decode().splitlines()[-1]
            assert last == f"heedful: another run is at work in {out}: wait for it, or choose another --out"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.decode()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Leave only so many bytes free."""
    filler = disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(disk).free - leave))
    return filler


def assert_no_pieces(folder: Path) -> None:
    assert not [
        each for each in folder.rglob("*") if each.name.startswith(("writing-", ".tmp")) or "partial" in each.name
    ]


def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(
    arguments, whole, broken, run, small_disk: Path
) -> None:
    out = small_disk / "out"
    shutil.copytree(broken, out)
    shutil.rmtree(out / NEWEST)
    checkpoint = sum(file.stat().st_size for file in (out / OLDER).iterdir())
    filler = fill(small_disk, checkpoint // 2)
    text = run(*arguments, out, code=2).stderr.decode()
    last = text.splitlines()[-1]
    assert last.startswith(f"heedful: cannot write {out / NEWEST}: the disk is full (")
    assert " needed, " in last and " free)" in last and "free some room" in last
    assert_no_pieces(out)
    assert "heedful: cannot write" in run(*arguments, out, code=2).stderr.decode()
    filler.unlink()
    text = run(*arguments, out).stderr.decode()
    assert f"continuing after step {STEPS - 1}" in text and "damaged" not in text
    assert_same_end(out, whole)


def test_a_disk_that_is_full_while_data_is_prepared_is_one_line(arguments, run, small_disk: Path) -> None:
    for leave in (0, 20_000):
        filler = fill(small_disk, leave)
        last = run(*arguments, small_disk / "new", code=2).stderr.decode().splitlines()[-1]
        assert last.startswith("heedful: cannot write ") and str(small_disk / "new") in last and "full" in last
        assert_no_pieces(small_disk)
        filler.unlink()
    run(*arguments, small_disk / "new")


def test_pages_and_exports_on_a_full_disk_are_one_line(run, untrained_model: Path, small_disk: Path) -> None:
    page, export = small_disk / "page.html", small_disk / "export"
    page.write_text("the one before")
    fill(small_disk, 8192)
    for arguments in (
        ("inspect", untrained_model, "red dog", "--out", page),
        ("export", untrained_model, "--to", "ctranslate2", export),
    ):
        last = run(*arguments, code=2).stderr.decode().splitlines()[-1]
        assert last.startswith(f"heedful: cannot write {arguments[-1]}: the disk is full (")
        assert sorted(each.name for each in small_disk.iterdir()) == ["filler", "page.html"]
    assert page.read_text() == "the one before"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of the size of files")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_is_cut_short_is_one_line(untrained_model: Path, tmp_path: Path, unbuffered: str) -> None:
    import resource

    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

    out = tmp_path / "out.json"
    with out.open("wb") as file:
        result = subprocess.run(
            [sys.executable, "-m", "heedful", "inspect", str(untrained_model), "red dog", "--json"],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=file,
            stderr=subprocess.PIPE,
            preexec_fn=limit_files,
        )
    assert result.returncode == 2, result.stderr.decode()
    [line] = result.stderr.decode().splitlines()
    assert line.startswith("heedful: cannot write ") and "ulimit -f" in line
    if sys.platform == "linux":
        assert str(out) in line


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of the size of files")
def test_a_checkpoint_beyond_the_largest_file_is_one_line(arguments, whole, broken) -> None:
    import resource

    shutil.rmtree(broken / NEWEST)
    largest = (broken / OLDER / "model.safetensors").stat().st_size + 1000

    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    command = [sys.executable, "-m", "heedful", *map(str, arguments), str(broken)]
    result = subprocess.run(command, capture_output=True, preexec_fn=limit_files)
    assert result.returncode == 2, result.stderr.decode()
    last = result.stderr.decode().splitlines()[-1]
    assert last.startswith(f"heedful: cannot write {broken / NEWEST}: ") and "ulimit -f" in last
    assert_no_pieces(broken)
    assert sorted(each.name for each in (broken / "run" / "checkpoints").iterdir()) == [Path(OLDER).name]
