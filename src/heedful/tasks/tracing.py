"""Looking at every tensor of a pipeline's model, and replacing tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from heedful.machine.torch_needed import needs_torch
from heedful.model_folder import LoadedModel
from heedful.tasks.declaration import resolve
from heedful.tasks.described import Described

if TYPE_CHECKING:
    from heedful.inspection.trace.patches import Patch

Own = TypeVar("Own", bound="Traceable")


class Traceable(Described):
    """A pipeline whose model can be traced and patched."""

    tokenizer: Any = None
    # Where the `Tracing` of its task is; it is imported when first needed.
    tracing: ClassVar[str]

    @contextmanager
    def patched(self: Own, patches: Mapping[str, Patch]) -> Iterator[Own]:
        """A block in which `as` gives this model with some of its tensors replaced, by name.

        A patch is a tensor, or a function of the tensor that it replaces. This model itself, and whoever uses it in
        the meantime, is not affected: the two share their parameters and nothing else.
        """
        with needs_torch("patching a model"):
            changed, made = _patched(self, patches)
        yield changed
        made.check_used()


def _patched(pipeline: Own, patches: Mapping[str, Patch]) -> tuple[Own, Any]:
    from heedful.inspection.trace.patches import Patches
    from heedful.inspection.trace.trace import check_traceable
    from heedful.tasks.patched_network import PatchedNetwork, Tracing, patches_of

    tracing: Tracing = resolve(pipeline.tracing)
    check_traceable(pipeline.config.family)
    own = patches_of(pipeline)
    if own is not None and isinstance(patches, Mapping):
        patches = {**own.patches, **patches}
    made = Patches(patches, tracing.growing)
    network = PatchedNetwork(traced_network(pipeline), made, tracing.next_logits)
    kind: Callable[[LoadedModel], Own] = type(pipeline)
    changed = kind(LoadedModel(network, pipeline.config, pipeline.tokenizer, pipeline.name))
    changed.__dict__["computation"] = tracing.computation(network)
    return changed, made


def computed_with(pipeline: Own, patches: Mapping[str, Patch]) -> Own:
    """The pipeline with those patches whose tensors its model can compute; the pipeline itself if there are none."""
    from heedful.inspection.trace.tapping import point_names

    known = point_names(traced_network(pipeline))
    there = {name: patch for name, patch in patches.items() if name in known}
    return _patched(pipeline, there)[0] if there else pipeline


def traced_network(pipeline: Any) -> Any:
    """The torch model of a pipeline, without patches."""
    from heedful.tasks.engines import torch_network
    from heedful.tasks.patched_network import PatchedNetwork

    if isinstance(pipeline.model, PatchedNetwork):
        return pipeline.model.network
    return torch_network(pipeline)
