"""Small real runs: those that have a fault are told what it is, and healthy ones that they are."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.errors import UserError
from heedful.inspection.run.diagnosis import Finding, diagnose, verdict
from heedful.inspection.run.run_record import RunRecord, read_run
from heedful.tasks.labelling.job import ClassifierData
from heedful.tasks.language_modeling.job import TextData

STACK = {"num_layers": 1, "dropout": 0.0, "attention": {"num_heads": 2}, "feed_forward": {"inner_width": 64}}


class Silent:
    """Told of all, says nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *details: None


def run(folder: Path, data: Any, preset: str, model: dict[str, Any], steps: int, schedule: dict[str, Any]) -> RunRecord:
    training = {
        "limit": {"steps": steps},
        "batches": {"tokens_per_step": 600},
        "saving": {"validations": 3},
        "machine": {"workers": 1, "threads": 1},
        "schedule": schedule,
        "label_smoothing": 0.0,
        "ema_decay": 0.0,
    }
    settings = {"model": {"width": 32, **model}, "training": training}
    heedful.train(heedful.RunConfig(str(folder / "model"), data, preset, settings), Silent())
    return read_run(folder / "model")


def translation(folder: Path, sources: list[str], targets: list[str], steps: int, **schedule: Any) -> RunRecord:
    for name, lines in (("a.en", sources), ("a.de", targets)):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = heedful.TranslationData(source=(str(folder / "a.en"),), target=(str(folder / "a.de"),))
    return run(folder, data, "translation_tiny", {"encoder": STACK, "decoder": STACK}, steps, schedule)


def classifier(folder: Path, labels: list[str], texts: list[str], steps: int, **schedule: Any) -> RunRecord:
    pairs = zip(labels, texts, strict=True)
    (folder / "a.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in pairs), encoding="utf-8")
    data = ClassifierData(data=(str(folder / "a.tsv"),))
    model = {"stack": STACK, "convolution": 0}
    return run(folder, data, "encoder_tiny", model, steps, schedule or {"learning_rate": 0.01})


def findings(record: RunRecord) -> dict[str, Finding]:
    return {finding.name: finding for finding in diagnose(record)}


@pytest.fixture
def lines(make_sentences) -> list[str]:
    return make_sentences(1500, seed=1)


def upper(lines: list[str]) -> list[str]:
    return [line.upper() for line in lines]


def with_dogs(lines: list[str]) -> list[str]:
    return ["dog" if "dog" in line.split() else "none" for line in lines]


def test_a_run_that_learns_is_healthy(tmp_path: Path, lines: list[str]) -> None:
    record = translation(tmp_path, lines, upper(lines), 150, learning_rate=0.01)
    assert verdict(record) == "healthy"
    assert diagnose(record) == []
    last = record.validations[-1]
    assert last["input_gain"] > 2
    assert set(last["attention_entropy"]) == {"encoder", "decoder", "cross"}
    assert all(0 < value < 1 for layers in last["attention_entropy"].values() for value in layers)


def test_shuffled_targets_are_called_misaligned(tmp_path: Path, lines: list[str]) -> None:
    targets = upper(lines)
    random.Random(5).shuffle(targets)
    found = findings(translation(tmp_path, lines, targets, 120, learning_rate=0.01))
    assert "source ignored" in found
    assert "misaligned" in found["source ignored"].title
    assert found["source ignored"].fault


def test_targets_that_are_nearly_all_alike_are_called_constant_output(tmp_path: Path, lines: list[str]) -> None:
    targets = ["the same" if number % 20 else line for number, line in enumerate(upper(lines))]
    found = findings(translation(tmp_path, lines, targets, 80, learning_rate=0.01))
    assert list(found) == ["constant output"]
    assert "“the same”" in found["constant output"].evidence
    assert "The data teaches this" in found["constant output"].advice


def test_a_model_that_too_high_a_rate_has_collapsed_gives_constant_output(tmp_path: Path, lines: list[str]) -> None:
    found = findings(translation(tmp_path, lines, upper(lines), 100, learning_rate=0.2))
    assert "constant output" in found
    assert "learning_rate" in found["constant output"].advice


def test_a_run_that_explodes_is_called_diverged(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(UserError, match="training went wrong at step"):
        translation(tmp_path, lines, upper(lines), 100, learning_rate=30.0)
    record = read_run(tmp_path / "model")
    assert verdict(record) == "divergence"
    assert "far above that of a random guess" in diagnose(record)[0].evidence


def test_a_run_that_loses_what_it_had_learned_is_called_diverged(tmp_path: Path, lines: list[str]) -> None:
    # The rate grows by 0.006 a step, and no warm-up ever ends.
    growing = {"kind": "inverse_square_root", "learning_rate": 60.0, "warmup_steps": 10_000}
    record = classifier(tmp_path, with_dogs(lines), lines, 150, **growing)
    assert verdict(record) == "divergence"
    assert "it had learned is lost" in diagnose(record)[0].evidence


def test_too_low_a_rate_learns_nothing(tmp_path: Path, lines: list[str]) -> None:
    assert verdict(translation(tmp_path, lines, upper(lines), 60, learning_rate=1e-9)) == "nothing learned"


def test_random_labels_are_called_unrelated_to_the_texts(tmp_path: Path, lines: list[str]) -> None:
    draw = random.Random(3)
    record = classifier(tmp_path, [draw.choice("ab") for _ in lines], lines, 60)
    assert "text ignored" in findings(record)


def test_labels_that_can_be_learned_are_healthy(tmp_path: Path, lines: list[str]) -> None:
    record = classifier(tmp_path, with_dogs(lines), lines, 60)
    assert verdict(record) == "healthy"
    assert record.validations[-1]["answers"]["commonest"] == "none"


def test_learning_by_heart_is_noted_but_no_fault(tmp_path: Path, lines: list[str]) -> None:
    few = lines[:300]
    labels = ["dog" if "dog" in line.split() and number % 4 else "none" for number, line in enumerate(few)]
    record = classifier(tmp_path, labels, few, 200)
    assert list(findings(record)) == ["overfitting"]
    assert verdict(record) == "healthy"


def test_a_language_model_that_collapsed_gives_constant_output(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = TextData(text=(str(tmp_path / "a.txt"),))
    record = run(tmp_path, data, "language_tiny", {"stack": STACK, "max_length": 64}, 60, {"learning_rate": 0.5})
    assert list(findings(record)) == ["constant output"]
