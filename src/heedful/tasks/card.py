"""The README.md of a model that heedful has trained."""

from __future__ import annotations

from heedful.model_folder import ModelConfig, model_card
from heedful.tasks.registry import all_tasks


def trained_card(
    config: ModelConfig, name: str, what: str, learned_from: str, details: str, scores: dict[str, float]
) -> str:
    """The card: what a model is, what it learned from, and the command that uses it, as its task declares it."""
    training = all_tasks()[config.task].training
    assert training is not None
    sentence = f"{what}, trained with heedful {config.heedful_version} on {learned_from}."
    return model_card(name, sentence, training.usage.format(name), details, scores)
