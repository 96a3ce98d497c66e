"""What tests of looking inside share: models that are traced or attend by recorded weights, folders of made-up runs."""

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.inspection.attention.maps import AttentionMaps
from heedful.inspection.attention.recording import recording_view
from heedful.inspection.trace.trace import Trace
from traced_models import CASES, Case

# Where a map of each kind comes from; the last is that of a recurrent model.
LAYERS = {
    "encoder": ["encoder.{}.attention", "blocks.{}.attention"],
    "decoder": ["decoder.{}.attention", "blocks.{}.attention"],
    "cross": ["decoder.{}.cross_attention", "decoder.cross_attention"],
    "image": ["blocks.{}.attention"],
    "content": ["blocks.{}.attention"],
    "query": ["blocks.{}.attention"],
}


class Replay:
    """Attention by given weights, whatever queries and keys say."""

    def __init__(self, weights_HTS: Tensor) -> None:
        self.weights_HTS = weights_HTS

    def __call__(self, query: Tensor, key: Tensor, value_BHSV: Tensor, *rest: object) -> Tensor:
        assert len(value_BHSV) == 1
        return self.weights_HTS @ value_BHSV


def replaying(model: nn.Module, found: AttentionMaps) -> nn.Module:
    """The model on the same parameters, with the weights of `found` in place of its attention."""
    view, _ = recording_view(model)
    modules = dict(view.named_modules())
    for each in found.maps:
        names = chain.from_iterable([pattern.format(each.layer)] for pattern in LAYERS[each.kind])
        module = next(modules[name] for name in names if name in modules)
        replay = Replay(torch.from_numpy(each.weights))
        if each.kind in ("content", "query"):
            module.attend[each.kind] = replay
        else:
            module.attend = replay
    return view


@pytest.fixture(scope="session")
def replay() -> Callable[[nn.Module, AttentionMaps], nn.Module]:
    return replaying


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    torch.manual_seed(5)
    return CASES[request.param]()


@pytest.fixture(scope="module")
def trace(case: Case) -> Trace:
    return case.trace()


@pytest.fixture(scope="session")
def make_case() -> Callable[[str], Case]:
    """Makes a case by its name."""

    def make(name: str) -> Case:
        torch.manual_seed(5)
        return CASES[name]()

    return make


WriteRun = Callable[..., Path]


def step(number: int, **values: Any) -> dict[str, Any]:
    row = {"kind": "train", "step": number, "epoch": 0, "loss": 5 - number / 1000, "learning_rate": 1e-3}
    row |= {"gradient_norm": 1.0 + number % 7, "target_tokens": 100 + number % 11, "padding": 0.03, "seconds": 0.5}
    return {**row, "elapsed": number * 0.6, **values}


def validation(number: int, **values: Any) -> dict[str, Any]:
    row = {"kind": "validation", "step": number, "loss": 4.0, "BLEU": 3.5, "input_gain": 2.0, "answers": None}
    row |= {"attention_entropy": {"self": [0.5, 0.25]}, "examples": [{"source": "a", "translation": "b"}]}
    return {**row, "seconds": 1.0, "elapsed": number * 0.6 + 1, **values}


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Writes rows, and what else belongs to a run."""

    def write(rows: list[dict[str, Any]], finished: bool = True, end: str = "") -> Path:
        folder = tmp_path / "made-up"
        run = folder / "run"
        checkpoint = run / "checkpoints" / "step-000000001"
        checkpoint.mkdir(parents=True)
        resolved = {"family": "encoder_decoder", "preset": "tiny", "training": {"optimizer": {"clip_norm": 1.0}}}
        choices = [{"name": "end", "value": "soon", "reason": "as asked"}]
        saved = {"resolved": resolved, "choices": choices}
        (run / "config.json").write_text(json.dumps({"requested": {"data": {}}, "saved": saved}))
        (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + end)
        hits = [{"rule": "duplicate", "action": "left out", "files": ["a", "b"], "line": line} for line in (3, 8)]
        report = [*hits, {"rule": "shortened", "action": "changed", "file": "a", "line": 1}, {"summary": {}}]
        (run / "data-report.jsonl").write_text("".join(json.dumps(each) + "\n" for each in report))
        (checkpoint / "state.json").write_text(json.dumps({"finished": finished}))
        return folder

    return write


@pytest.fixture
def step_row() -> Callable[..., dict[str, Any]]:
    return step


@pytest.fixture
def validation_row() -> Callable[..., dict[str, Any]]:
    return validation
