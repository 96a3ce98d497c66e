"""Which engine computes with a model: heedful's own, or torch."""

from __future__ import annotations

from typing import Any, Literal

from heedful.core.library import instruction_set, why_not_built
from heedful.core.model import CoreModel, runs_family
from heedful.errors import UserError
from heedful.machine.devices import device_type, hold_to_one_thread
from heedful.machine.torch_needed import has_torch, torch_missing
from heedful.model_folder import ModelConfig
from heedful.weights_index import weights_version


def why_not_core(config: ModelConfig, device: str = "auto") -> str | None:
    """Why heedful's engine cannot do what is asked, in words; None if it can."""
    if not runs_family(config.family):
        return f"models of the family {config.family} run on torch"
    if device_type(device) != "cpu":
        return f"the device {device_type(device)} is for torch"
    return why_not_built()


def choose_engine(engine: str, config: ModelConfig, device: str = "auto") -> Literal["core", "torch"]:
    """The engine that computes: the one asked for, or for "auto" heedful's own if it can do what is asked."""
    if engine not in ("auto", "core", "torch"):
        raise UserError(f"engine is {engine!r}: choose auto, core or torch")
    if engine == "torch":
        return "torch"
    reason = why_not_core(config, device)
    if engine == "core" and reason:
        raise UserError(f"the engine core cannot do this: {reason}")
    return "torch" if reason else "core"


def engine_in_words(config: ModelConfig) -> str:
    """The engine that computes with a model by default, and its instruction set, or why it is torch."""
    reason = why_not_core(config)
    return f"torch: {reason}" if reason else f"core ({instruction_set()})"


def torch_network(pipeline: Any) -> Any:
    """The torch model of a pipeline; where heedful's engine computes, it is loaded at the first call."""
    network = pipeline.model
    if not isinstance(network, CoreModel):
        if has_torch():
            from heedful.tasks.patched_network import refuse_patched

            refuse_patched(network)
        return network
    if network.torch_network is None:
        if not has_torch():
            raise torch_missing("looking into attention")
        if network.threads == 1:
            hold_to_one_thread()
        from heedful.tasks.loading import load

        loaded = load(network.folder, "cpu", network.asked_length, engine="torch").model
        if weights_version(network.folder) != network.version:
            raise UserError(f"the model in {network.folder} has been replaced since it was loaded: load it again")
        network.torch_network = loaded
    return network.torch_network
