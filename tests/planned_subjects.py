"""Small subjects of plans, of every family, with sizes that two or four GPUs can share."""

from dataclasses import replace
from typing import Any

import torch

from heedful.models.families import FAMILIES
from heedful.planning.layouts import Layout
from heedful.planning.measured import parallel_config
from heedful.planning.subject import Subject, completed
from heedful.presets.preset import make_preset
from heedful.tasks.cross_entropy import output_cross_entropy
from heedful.training.parallel.apply import make_mesh, parallelize
from heedful.training.parallel.world import World
from heedful.training.step import TrainingStep

STACK = {"num_layers": 2, "norm": "pre", "dropout": 0.1, "attention": {"num_heads": 4}}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "translation": (
        "encoder_decoder",
        {
            "vocabulary_size": 997,
            "width": 40,
            "max_length": 31,
            "encoder": {**STACK, "num_layers": 1},
            "decoder": STACK,
        },
    ),
    "gpt": (
        "decoder_only",
        {
            "vocabulary_size": 997,
            "width": 40,
            "max_length": 32,
            "stack": {**STACK, "feed_forward": {"activation": "gelu_tanh"}, "local_window": 7},
        },
    ),
    "modern": (
        "decoder_only",
        {
            "vocabulary_size": 499,
            "width": 40,
            "max_length": 29,
            "positions": "rotary",
            "stack": {
                **STACK,
                "norm_kind": "rms",
                "attention": {"num_heads": 4, "num_key_value_heads": 2},
                "feed_forward": {"activation": "swiglu", "bias": False},
            },
        },
    ),
    "encoder": ("encoder_only", {"vocabulary_size": 997, "width": 40, "max_length": 37, "stack": STACK}),
    "vision": (
        "vision",
        {"image_size": [20, 28], "patch_size": [4, 4], "width": 40, "num_classes": 11, "stack": STACK},
    ),
}


def subject(name: str, precision: str = "bf16", **training: Any) -> Subject:
    """A small subject."""
    family, model = MODELS[name]
    recipe = {"batches": {"tokens_per_step": 2000}, "machine": {"precision": precision}, **training}
    preset = make_preset(family, model, recipe)
    return completed(Subject(name, family, preset.model, preset.training))


def without_dropout(given: Subject) -> Subject:
    """The same with no random numbers."""
    names = ("encoder", "decoder") if given.family == "encoder_decoder" else ("stack",)
    stacks = {name: replace(getattr(given.model, name), dropout=0.0) for name in names}
    return replace(given, model=replace(given.model, **stacks))


def losses_in_both_precisions(world: World) -> list[list[float]]:
    """The losses of three steps of plain gradient descent, in fp32 and in bf16, with the model in shards."""
    given, size = without_dropout(subject("gpt")), world.size
    ids = torch.arange(3 * 32).view(3, 32) * 7 % 997
    mesh = make_mesh(parallel_config(Layout(shard=size)), "cpu")
    found = []
    for bf16 in (False, True):
        torch.manual_seed(1)
        model = FAMILIES[given.family].build(given.model)
        step = TrainingStep(
            model,
            lambda model, ids: output_cross_entropy(model.output, model.hidden(ids).flatten(0, 1), ids.flatten(), 0.0),
        )
        parallelize(step, model, mesh, parallel_config(Layout(shard=size)), bf16=bf16)
        losses = []
        for _ in range(3):
            loss = step(ids)[0] / (size * ids.numel())
            loss.backward()
            assert all(each.dtype == each.grad.dtype == torch.float32 for each in model.parameters())
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.sub_(parameter.grad, alpha=0.1)
                    parameter.grad = None
            losses.append(float(loss) * size)
        found.append(losses)
    return found
