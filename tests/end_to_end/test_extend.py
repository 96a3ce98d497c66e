"""A run that has finished goes on to a later end, and to the same weights if it is killed on the way."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.training.schedule import ScheduleConfig, learning_rate

pytestmark = pytest.mark.slow

SETTINGS = [
    "model.width=32",
    "model.encoder={num_layers=1, dropout=0.2, attention={num_heads=2}, feed_forward={inner_width=64}}",
    "model.decoder={num_layers=1, dropout=0.2, attention={num_heads=2}, feed_forward={inner_width=64}}",
    "training.batches={tokens_per_step=600, tokens_per_batch=300}",
    "training.saving={validations=4, checkpoint_seconds=0.0}",
    "training.machine.workers=2",
    "training.schedule={learning_rate=0.008, warmup_share=0.25}",
]


@pytest.fixture
def command(tmp_path: Path, make_sentences) -> Callable[..., list[str]]:
    lines = make_sentences(300, seed=11)
    (tmp_path / "a.en").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.de").write_text("\n".join(line.upper() for line in lines) + "\n")

    def build(out: str, *more: str, source: str = "a.en") -> list[str]:
        files = ["--source", tmp_path / source, "--target", tmp_path / "a.de", "--out", tmp_path / out]
        return ["train", "translation", *map(str, files), *(f"--set={each}" for each in SETTINGS), *more]

    return build


def rows(out: Path, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (out / "run" / "metrics.jsonl").read_text().splitlines()]
    return [row for row in found if row["kind"] == kind]


def losses(out: Path) -> list[tuple[str, int, float]]:
    return [(kind, row["step"], row["loss"]) for kind in ("train", "validation") for row in rows(out, kind)]


def test_killed_in_the_extended_part_it_is_the_run_that_was_extended_without_a_kill(
    command, tmp_path: Path, run: Callable
) -> None:
    run(*command("whole", "--steps", "8"))
    shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    extended = b"after 8 steps: training.limit.steps was 8 and is now 20. Add --extend"
    assert extended in run(*command("whole", "--steps", "20"), code=2).stderr.replace(b"\n", b" ")
    said = run(*command("whole", "--steps", "20", "--extend")).stderr.decode()
    assert "continuing after step 8" in said and "extended" in said

    arguments = command("killed", "--steps", "20", "--extend")
    process = subprocess.Popen([sys.executable, "-m", "heedful", *arguments], stderr=subprocess.DEVNULL)
    while len(rows(tmp_path / "killed", "train")) < 13:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.001)
    process.kill()
    process.wait()
    run(*command("killed", "--steps", "20"))  # by now it is a run of 20 steps

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert losses(killed) == losses(whole)
    for name in ("model.safetensors", "config.json", "run/checkpoints/step-000000020/model.safetensors"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    assert [row["step"] for row in rows(whole, "train")] == list(range(1, 21))
    assert [row["step"] for row in rows(whole, "validation")][-3:] == [10, 15, 20]
    check_rates([row["learning_rate"] for row in rows(whole, "train")])


def check_rates(rates: list[float]) -> None:
    """Eight steps that fall to zero, a second warm-up without a jump, and then what a run of 20 steps has."""
    assert rates[8] < rates[7] < 0.3 * max(rates)
    top = 8 + rates[8:].index(max(rates[8:]))
    assert 9 < top < 14
    assert rates[8 : top + 1] == sorted(rates[8 : top + 1])
    schedule = ScheduleConfig("decay", 0.008, warmup_share=0.25)
    long = [learning_rate(schedule, 32, step + 1, step / 20) for step in range(20)]
    assert rates[top + 1 :] == pytest.approx(long[top + 1 :])
    assert all(rate <= wanted for rate, wanted in zip(rates[8:], long[8:], strict=True))


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        (["--epochs", "1"], ["--epochs", "2"]),
        (["--set=training.limit.patience=1"], ["--set=training.limit.patience=2"]),
    ],
    ids=["epochs", "patience"],
)
def test_every_limit_can_be_extended(
    command, tmp_path: Path, run: Callable, shorter: list[str], longer: list[str]
) -> None:
    patience = "patience" in shorter[0]
    more = ["--set=training.saving.validate_every_steps=2", "--set=training.schedule.learning_rate=1e-12"] * patience
    run(*command("run", *shorter, *more))
    before = len(rows(tmp_path / "run", "train"))
    assert b"--extend" in run(*command("run", *longer, *more), code=2).stderr
    run(*command("run", *longer, *more, "--extend"))
    after = [row["learning_rate"] for row in rows(tmp_path / "run", "train")[before:]]
    assert len(after) >= 2
    if not patience:
        assert after[0] < max(after) and after[-1] < max(after)


def test_what_cannot_be_extended_is_refused(command, tmp_path: Path, run: Callable) -> None:
    run(*command("run", "--steps", "4"))
    before = (tmp_path / "run" / "run" / "config.json").read_bytes()
    for limit, words in (
        (["--steps", "3"], b"is less"),
        (["--epochs", "3"], b"by a larger steps only"),
        (["--steps", "9", "--set=training.seed=2"], b"training.seed was None and is now 2"),
    ):
        assert words in run(*command("run", *limit, "--extend"), code=2).stderr.replace(b"\n", b" ")
    state = max((tmp_path / "run" / "run" / "checkpoints").glob("step-*")) / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "finished": False}))
    assert b"has not got there yet" in run(*command("run", "--steps", "9", "--extend"), code=2).stderr
    assert (tmp_path / "run" / "run" / "config.json").read_bytes() == before


def test_a_run_is_known_by_the_contents_of_its_files_wherever_they_are(
    command, tmp_path: Path, run: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*command("here", "--steps", "4"))
    shutil.copytree(tmp_path / "here", tmp_path / "else" / "where")
    run(*command("here", "--steps", "8", "--extend"))

    (tmp_path / "a.en").rename(tmp_path / "else" / "renamed.txt")
    monkeypatch.chdir(tmp_path / "else")
    moved = command("else/where", "--steps", "8", "--extend", source="else/renamed.txt")
    relative = [each.replace(f"{tmp_path}/else/", "") for each in moved]
    assert "renamed.txt" in relative
    assert b"continuing after step 4" in run(*relative).stderr
    assert losses(tmp_path / "else" / "where") == losses(tmp_path / "here")
    for name in ("model.safetensors", "config.json"):  # with the languages of the first names, too
        assert (tmp_path / "else" / "where" / name).read_bytes() == (tmp_path / "here" / name).read_bytes(), name
    assert json.loads((tmp_path / "here" / "config.json").read_text())["source_language"] == "en"

    other = [*moved[:2], "--source-language", "fr", *moved[2:]]
    assert b"data.source_language was 'en' and is now 'fr'" in run(*other, code=2).stderr.replace(b"\n", b" ")
    assert len(rows(tmp_path / "here", "train")) == 8
    (tmp_path / "a.en").write_text((tmp_path / "else" / "renamed.txt").read_text().replace("dog", "cow"))
    assert b"have changed since the run" in run(*command("here", "--steps", "8"), code=2).stderr.replace(b"\n", b" ")
