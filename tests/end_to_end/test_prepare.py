"""`heedful prepare`, and the training that begins with what it has prepared, in any number of processes."""

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.cli.prepare import prepare
from heedful.cli.train import train
from heedful.errors import UserError

SETTINGS = [
    "model.width=32",
    "model.encoder={num_layers=1, dropout=0.2, attention={num_heads=2}, feed_forward={inner_width=46}}",
    "model.decoder={num_layers=1, dropout=0.2, attention={num_heads=2}, feed_forward={inner_width=46}}",
    "training.batches={tokens_per_step=600, tokens_per_batch=300}",
    "training.saving={validations=2}",
    "training.machine={workers=2, threads=1}",
]
Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, make_sentences: Callable) -> Path:
    path = tmp_path_factory.mktemp("prepare")
    for name, count in (("a", 300), ("b 2", 100)):
        lines = make_sentences(count, seed=count)
        (path / f"{name}.en").write_text("\n".join(lines) + "\n")
        (path / f"{name}.de").write_text("\n".join(line.upper() for line in lines) + "\n")
    return path


def arguments(folder: Path, out: str) -> list[str]:
    files = [f"--{side}={folder / name}.{end}" for name in ("a", "b 2") for side, end in zip(*SIDES, strict=True)]
    sets = [f"--set={setting}" for setting in SETTINGS]
    return ["translation", *files, "--weights", "1,3", "--out", str(folder / out), *sets, "--steps", "7"]


SIDES = (("source", "target"), ("en", "de"))


def outcome(out: Path) -> tuple[list[tuple[str, int, float]], bytes]:
    rows = [json.loads(line) for line in (out / "run" / "metrics.jsonl").read_text().splitlines()]
    return [(row["kind"], row["step"], row["loss"]) for row in rows], (out / "model.safetensors").read_bytes()


def test_two_processes_on_prepared_corpora_give_the_bits_of_one_that_prepares_them(run: Run, folder: Path) -> None:
    shown = run("prepare", *arguments(folder, "two")).stderr.decode()
    assert "encoding ..." in shown and "every one of these lines is listed in" in shown
    assert re.search(r"mixture of an epoch: .*a\.en 25\.\d% \(each pair 0\.\d+ times\), .*b 2\.en 7", shown)
    assert re.search(r"done: the data is prepared: .*two/run/prepared \(\d+\.\d MB\)\n", shown)
    assert "was prepared already" in run("prepare", *arguments(folder, "two")).stderr.decode()
    # What is said to be next is a command that can be typed.
    _, *following = shlex.split(shown.rpartition("next: ")[2])
    assert following == ["train", *arguments(folder, "two")]
    made = (folder / "two" / "run" / "prepared" / "meta.json").stat().st_mtime_ns
    command = [sys.executable, "-m", "heedful", *following, "--processes", "2"]
    ended = subprocess.run(command, capture_output=True, timeout=240, stdin=subprocess.DEVNULL)
    assert ended.returncode == 0, ended.stderr.decode()[-3000:]
    assert b"encoding ..." not in ended.stderr and b"2: replicate 2" in ended.stderr
    assert (folder / "two" / "run" / "prepared" / "meta.json").stat().st_mtime_ns == made
    run("train", *arguments(folder, "one"))
    assert outcome(folder / "two") == outcome(folder / "one")
    assert "each pair" in (folder / "one" / "README.md").read_text()
    refused = run("train", *arguments(folder, "one"), "--weights", "1,1", code=2).stderr.decode()
    assert "data.weights was [1.0, 3.0] and is now [1.0, 1.0]" in refused


@pytest.mark.slow
def test_a_preparation_that_is_killed_is_done_by_the_same_command(run: Run, folder: Path) -> None:
    words = (folder / "a.en").read_text().split()
    with (folder / "long.txt").open("w") as file:
        file.writelines(f"{' '.join(words[n % 97 : n % 97 + 40])} {n}\n" for n in range(9_001))
    command = ["prepare", "masked-language-model", "--text", str(folder / "long.txt"), "--out", str(folder / "killed")]
    process = subprocess.Popen([sys.executable, "-m", "heedful", *command], stderr=subprocess.DEVNULL)
    while not (folder / "killed" / "run" / "prepared.partial").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (folder / "killed" / "run" / "prepared").exists()
    assert b"is prepared" in run(*command).stderr
    assert {path.name for path in (folder / "killed" / "run").iterdir()} <= {
        "prepared",
        "data-report.jsonl",
        "digests.json",
        "lock",
    }


def test_every_training_has_its_preparation_with_the_same_options() -> None:
    assert prepare.commands.keys() == train.commands.keys()
    for name, command in prepare.commands.items():
        assert [each.opts for each in command.params] == [each.opts for each in train.commands[name].params]
        assert f"heedful prepare {name} --" in (command.help or "") and "heedful train" in (command.epilog or "")


def test_mistakes_are_told_in_one_line(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for more, expected in (
        (["--weights", "one,2"], "heedful: --weights: 'one,2' is not a list of numbers, as in 3,1"),
        (["--weights", "1,2,3"], "heedful: --weights has 3 numbers, but there are 2 corpora"),
        (["--weights", "1,0"], "b 2.en is 0, but must be above 0"),
        (["--weights", "1e6,1e-6"], "gives it none of the"),
        (["--source", "nowhere.en"], "heedful: there is no file nowhere.en"),
    ):
        shown = run("prepare", *arguments(folder, "wrong"), *more, code=2).stderr.decode()
        assert expected in shown.splitlines()[-1], shown
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="works in one process: start it by itself, without torchrun"):
        prepare.main(arguments(folder, "wrong"), standalone_mode=False)
