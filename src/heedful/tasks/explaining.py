"""From a pipeline and a text to the data of the page that explains the computation, with switches that change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from heedful.config import nearest, require_whole
from heedful.decoding.options import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, is_number
from heedful.errors import UserError
from heedful.inspection.explain.document import Explained
from heedful.inspection.trace.trace import check_traceable
from heedful.layers.multi_head_attention import AttentionHeads
from heedful.layers.relative_attention import RelativeAttention
from heedful.tasks.tracing import traced_network


@dataclass(frozen=True)
class Switches:
    """What is changed in a computation: logits over a temperature; no 1 / sqrt(d_k), mask or positions; a head off.

    `head_off` is the name of an attention, such as `encoder.0.attention`, and the number of its head, from 0.
    """

    temperature: float = 1.0
    scaling: bool = True
    mask: bool = True
    positions: bool = True
    head_off: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        if not is_number(self.temperature) or not LOWEST_TEMPERATURE <= self.temperature <= HIGHEST_TEMPERATURE:
            raise UserError(f"temperature must be from {LOWEST_TEMPERATURE} to {HIGHEST_TEMPERATURE}")

    def patches(self, network: Any) -> dict[str, Any]:
        """What replaces the model's own tensors, by name; the model may not compute all of them."""
        found: dict[str, Any] = {}
        if self.temperature != 1.0:
            found["logits"] = lambda logits: logits / self.temperature
        for name, layer in attentions(network).items():
            if not self.scaling and layer.scale != 1.0:
                found[f"{name}.scaled"] = _times(1.0 / layer.scale)
            if not self.mask:
                found[f"{name}.mask"] = torch.ones_like
            if not self.positions:
                found |= {f"{name}.{last}": torch.zeros_like for last in ("positions", "distance_scores")}
        if not self.positions:
            embeddings = ("source_embedding", "target_embedding", "embedding")
            found |= {f"{name}.positions": torch.zeros_like for name in embeddings}
            found["positions.output"] = torch.zeros_like
        if self.head_off is not None:
            name, head = self.head_off
            known = attentions(network)
            if name not in known:
                raise UserError(f"there is no attention {name!r}: {nearest(name, list(known))}")
            require_whole(head, "head_off", 0, heads_of(known[name]) - 1)
            found[f"{name}.mixed"] = _without(head)
        return found


def attentions(network: Any) -> dict[str, AttentionHeads | RelativeAttention]:
    """The attention layers of a network by the names of their points."""
    found: dict[str, AttentionHeads | RelativeAttention] = {}
    for name, module in network.named_modules():
        if isinstance(module, AttentionHeads):
            found[name] = module
        elif isinstance(module, RelativeAttention):
            block, number, rest = name.split(".", 2)
            found |= {f"{block}.{number}.{stream}.{rest}": module for stream in ("content", "query")}
    return found


def heads_of(layer: AttentionHeads | RelativeAttention) -> int:
    """How many heads a layer has."""
    return layer.num_heads if isinstance(layer, AttentionHeads) else layer.parts[0][0]


def _times(factor: float) -> Any:
    return lambda tensor: tensor * factor


def _without(head: int) -> Any:
    def cut(mixed_BHTV: Tensor) -> Tensor:
        mixed_BHTV[:, head] = 0.0
        return mixed_BHTV

    return cut


def explained(pipeline: Any, given: Any, switches: Switches | None = None, **options: Any) -> Explained:
    """What the page shows of a text or an image; `options` are those of the pipeline's `trace`."""
    from heedful.tasks.tracing import computed_with

    check_traceable(pipeline.config.family)
    switches = switches or Switches()
    network = traced_network(pipeline)
    trace = computed_with(pipeline, switches.patches(network)).trace(given, **options)
    stack = getattr(pipeline.config.model, "stack", None) or pipeline.config.model.encoder
    labels: tuple[str, ...] = pipeline.config.labels
    name = labels.__getitem__ if labels else pipeline.tokenizer.token_text
    pre_norm = trace.family != "xlnet" and stack.norm == "pre"
    summary = pipeline.config.model.summary()
    changes = {key: value for key, value in asdict(switches).items() if value != asdict(Switches())[key]}
    return Explained(trace, summary, pre_norm, stack.feed_forward.activation, name, changes)


def switches_of(given: Mapping[str, Any]) -> Switches:
    """Switches as a client sends them."""
    head = given.get("head_off")
    return Switches(**{**given, "head_off": None if head is None else (head["attention"], head["head"])})
