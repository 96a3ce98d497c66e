"""A measured step against closed forms, and against tensors that are really there."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from heedful.models.families import FAMILIES
from heedful.planning.layouts import Layout
from heedful.planning.live_bytes import LiveBytes
from heedful.planning.measured import measure
from heedful.planning.ranking import Planner
from heedful.planning.shape import with_layers
from heedful.planning.subject import subject_of
from heedful.planning.timing import Hardware
from heedful.tasks.language_modeling.task import LanguageBatch, language_loss
from heedful.training.parallel.pipeline import Grid, PipelineGradients
from heedful.training.parallel.stages import Stage, keep_stage
from planned_subjects import subject

HARDWARE = Hardware(80e9, 400e12, 400e9)


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("translation", Layout(replicate=2, shard=4, sequences=5)),
        ("translation", Layout(shard=4, tensor=2, recompute=True, sequences=3, parts=3)),
        ("gpt", Layout(replicate=2, shard=3, tensor=4, recompute=True, sequences=4)),
        ("modern", Layout(shard=8, sequences=3, parts=2)),
        ("encoder", Layout(replicate=2, tensor=2, sequences=6)),
        ("vision", Layout(replicate=5, shard=2, recompute=True, sequences=7)),
    ],
)
def test_traffic_and_what_is_held_are_those_of_the_closed_forms(name: str, layout: Layout) -> None:
    given = subject(name, ema_decay=0.9)
    formula, found = Planner.of(given).planned(layout, HARDWARE), measure(given, layout)
    assert found.memory["parameters"] == formula.memory["parameters"]
    assert found.memory["optimizer"] == pytest.approx(formula.memory["optimizer"], rel=0.02)  # and a few counters
    for axis, sent in found.sent.items():
        # Besides the tensors that count, a few single numbers are sent.
        assert sent == pytest.approx(formula.sent[axis], rel=0.03, abs=2000), axis


def test_memory_and_traffic_at_the_papers_sizes_are_near_the_closed_forms() -> None:
    whole = subject_of("translation_base")
    given = replace(whole, model=with_layers(whole.family, whole.model, 1))
    for layout in (Layout(4, 2, sequences=8), Layout(1, 2, 4, recompute=True, sequences=16, parts=2)):
        formula, found = Planner.of(given).planned(layout, HARDWARE), measure(given, layout)
        assert found.total == pytest.approx(sum(formula.memory.values()), rel=0.15)
        assert found.sent == pytest.approx({axis: formula.sent[axis] for axis in found.sent}, rel=0.01)


@pytest.mark.parametrize("parts", [2, 5])
def test_copies_of_stages_sum_their_gradients_once_in_a_step(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given, layout = subject("gpt", "fp32"), Layout(replicate=3, pipeline=2, parts=parts)
    summed: list[int] = []
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=layout.gpus)
    try:
        model, grid = FAMILIES[given.family].build(given.model), Grid(layout.replicate, layout.pipeline, 60.0)
        owners = keep_stage(model, grid.stage, grid.stages)
        gradients = PipelineGradients(Stage(model, language_loss, grid.stage, grid.stages, False), owners, grid)
        ids = torch.zeros(1, given.model.max_length, dtype=torch.long)
        monkeypatch.setattr(
            dist, "all_reduce", lambda each, group=None: summed.append(each.nbytes * (group is grid.replicas))
        )
        # The sums do not depend on what the stages hand on to each other, which needs them all.
        monkeypatch.setattr(gradients, "_schedule_of", lambda *given: SimpleNamespace(step=lambda **turns: None))
        gradients.compute([(number, LanguageBatch(ids, ids, None)) for number in range(parts)], 1, 1)
    finally:
        dist.destroy_process_group()
    # A ring sends a sum twice, to all but one of the copies.
    sent = Planner.of(given).planned(layout, HARDWARE).sent["replicate"]
    assert sent == pytest.approx(2 * sum(summed) * 2 / 3, rel=0.01)


def test_recomputing_saves_activations_and_costs_traffic() -> None:
    given = subject("gpt")
    plain, again = (measure(given, Layout(shard=2, tensor=2, recompute=each, sequences=31)) for each in (False, True))
    assert again.memory["activations"] < 0.8 * plain.memory["activations"]
    assert again.sent["tensor"] > plain.sent["tensor"]
    assert again.sent["shard"] == plain.sent["shard"]


def test_live_bytes_follow_tensors_that_are_made_resized_and_freed() -> None:
    weight = torch.zeros(7, 11)
    live = LiveBytes()
    live.take([weight], "parameters")
    with live.following():
        first = torch.ones(101)
        second = first + 1  # 404 more
        view = second[3:]
        del first, second
        third = torch.zeros(50)  # the view keeps all of what it looks at
        third.untyped_storage().resize_(4000)
        third.untyped_storage().resize_(0)
        with live.default("optimizer"):
            fourth = torch.zeros(13)
    assert live.peak() == {"parameters": 308, "gradients": 0, "optimizer": 0, "activations": 4404, "buffers": 0}
    assert view.numel() + fourth.numel() == 111
