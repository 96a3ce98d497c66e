"""Small language models that learn the reference text: trained once for all claims that need the same one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import nn

from heedful.claims.learning.course import PILOT_SEED, Course, Learned, best_rate, learn
from heedful.claims.learning.kept_models import kept_model
from heedful.claims.learning.text import held_out_scores, next_token_loss, reference_text, windows
from heedful.claims.workbench import Workbench
from heedful.models.decoder_only import DecoderOnly
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig

LENGTH, ROWS, RATE = 64, 16, 0.008


@dataclass(frozen=True)
class TextTrial:
    """A language model, how it learns, and with which seed; `portion` is how many characters it learns from."""

    model: DecoderOnlyConfig
    seed: int
    steps: int
    learning_rate: float = RATE
    smoothing: float = 0.0
    portion: int | None = None
    length: int = LENGTH
    rows: int = ROWS


@dataclass(frozen=True)
class TextResult:
    """The loss and the share of right predictions on held-out text, and how the training went."""

    loss: float
    accuracy: float
    train_loss: float
    parameters: int
    curve: tuple[float, ...]
    seconds: float


def small_config(
    width: int = 64,
    layers: int = 2,
    heads: int = 4,
    *,
    positions: str = "rotary",
    length: int = LENGTH,
    attention: AttentionConfig | None = None,
    inner_width: int | None = None,
    dropout: float = 0.0,
    scaled_embedding: bool = False,
    tied_output: bool = True,
) -> DecoderOnlyConfig:
    """The settings of a small character model: pre-norm, with rotary positions, with which it learns fastest."""
    stack = StackConfig(
        layers,
        "pre",
        dropout,
        attention or AttentionConfig(heads),
        FeedForwardConfig(inner_width, "gelu"),
    )
    return DecoderOnlyConfig(
        reference_text().vocabulary_size,
        width,
        length,
        positions,
        tied_output,
        EmbeddingConfig(scaled=scaled_embedding),
        stack,
    )


def build(trial: TextTrial) -> DecoderOnly:
    """The model before its training."""
    torch.manual_seed(trial.seed)
    return DecoderOnly(trial.model)


def learn_text(model: nn.Module, trial: TextTrial, seconds: float | None = None) -> Learned:
    """Train any model of next characters as the trial says."""
    text = reference_text().train[: trial.portion]

    def loss(step: int) -> torch.Tensor:
        return next_token_loss(model, windows(text, trial.rows, trial.length + 1, (trial.seed, step)), trial.smoothing)

    return learn(model, loss, Course(trial.steps, trial.learning_rate, seconds=seconds))


def result_of(model: nn.Module, trial: TextTrial, learned: Learned) -> TextResult:
    """How good a trained model is."""
    loss, accuracy = held_out_scores(model, trial.length)
    parameters = sum(each.numel() for each in model.parameters())
    curve = tuple(learned.curve)
    return TextResult(loss, accuracy, learned.end, parameters, curve, learned.seconds[-1] if learned.seconds else 0.0)


def tried(bench: Workbench, trial: TextTrial) -> TextResult:
    """The result of a trial, which another claim may already have produced."""

    def make() -> dict[str, Any]:
        bench.tell(f"a model of text, seed {trial.seed}")
        model = build(trial)
        return asdict(result_of(model, trial, learn_text(model, trial)))

    found = bench.shared.value("text", asdict(trial), make)
    return replace(TextResult(**found), curve=tuple(found["curve"]))


def tuned(bench: Workbench, trial: TextTrial) -> TextTrial:
    """The trial at the rate that suits its model best, judging by a third of the steps with the pilots' seed."""
    pilot = replace(trial, seed=PILOT_SEED, steps=trial.steps // 3)
    rate = best_rate(lambda rate: tried(bench, replace(pilot, learning_rate=rate)).train_loss)
    return replace(trial, learning_rate=rate)


def trained_model(bench: Workbench, trial: TextTrial) -> DecoderOnly:
    """The trained model itself, whose weights are kept."""

    def train(model: DecoderOnly) -> None:
        bench.tell(f"a model of text, seed {trial.seed}")
        learn_text(model, trial)

    return kept_model(bench.shared, ["text", asdict(trial)], build(trial), train)


def common_trial(bench: Workbench, seed: int = 1) -> TextTrial:
    """The trial whose model serves claims that look into a trained one."""
    return TextTrial(small_config(), seed, bench.choose(300, 400))
