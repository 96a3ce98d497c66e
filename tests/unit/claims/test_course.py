"""Courses of training that diverge: such a run loses against every other, and is told as what it is."""

import pytest
import torch
from torch import nn

from heedful.claims.evidence import number
from heedful.claims.learning import text_trials
from heedful.claims.learning.course import told_rates
from heedful.claims.learning.text import reference_text
from heedful.claims.learning.text_trials import TextTrial, learn_text, result_of, small_config
from heedful.claims.measured import batches, parallel_training

DIVERGED = 99.0


class Bursting(nn.Module):
    """A model of next characters that learns until some step, whose logits are not numbers."""

    def __init__(self, burst: int) -> None:
        super().__init__()
        self.bias, self.left = nn.Parameter(torch.zeros(reference_text().vocabulary_size)), burst

    def forward(self, ids_BT: torch.Tensor) -> torch.Tensor:
        logits_BTV = self.bias.expand(*ids_BT.shape, -1)
        self.left -= self.training
        return logits_BTV * float("nan") if self.training and self.left < 0 else logits_BTV


@pytest.mark.parametrize("burst", [0, 1, 58, 59])
def test_a_run_that_diverges_loses_against_every_other(burst: int) -> None:
    trial = TextTrial(small_config(16, 1), 1, 60, rows=2, length=7)
    models = {"whole": Bursting(60), "burst": Bursting(burst)}
    runs = {name: learn_text(model, trial) for name, model in models.items()}
    found = {name: result_of(model, trial, runs[name]) for name, model in models.items()}
    assert found["whole"].train_loss < 5 and found["whole"].loss < 5
    for end in (found["burst"].train_loss, found["burst"].loss, found["burst"].curve[-1], runs["burst"].losses[-1]):
        assert end == DIVERGED
    # A chart shows both, so both have as many points; and only steps that were taken took time.
    assert len(found["burst"].curve) == len(found["whole"].curve) and len(runs["burst"].seconds) == burst + 1


def test_a_run_against_time_that_diverges_at_once_has_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "translation_loss", lambda model, batch: model.output.weight.sum() * float("nan"))
    found = batches.run(batches.WAYS[0], 300, 1, 0.2)
    assert found["loss"] == DIVERGED and found["speed"] > 0 and found["steps"] == 1
    monkeypatch.setattr(text_trials, "next_token_loss", lambda model, *_: model.output.weight.sum() * float("nan"))
    read = parallel_training.run("Transformer", 1, 0.2, 0.004)
    assert read["loss"] == DIVERGED and read["losses"] == [DIVERGED] and len(read["seconds"]) == 1


def test_chosen_rates_are_told_with_what_got_them() -> None:
    assert told_rates({"a": 0.008, "b": 0.002, "c": 0.008}) == "0.002 for b; 0.008 for a, c"


def test_diverged_runs_are_told() -> None:
    assert number("loss", [DIVERGED, 2.0, 3.0], "nats/word").name == "loss (1 of 3 diverged)"
    assert number("speed", [DIVERGED, 2.0], "tokens/s").name == "speed"
