"""Small encoder-decoders that translate the little language: trained once for all claims that need the same one."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.claims.evidence import shown_loss
from heedful.claims.learning.course import Course, Learned, learn
from heedful.claims.learning.kept_models import kept_model
from heedful.claims.learning.little_language import PADDING, VOCABULARY, PairBatch, batch_of, draw_sentences
from heedful.claims.workbench import Workbench
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.attention import AttentionConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.stack import StackConfig

RATE = 0.003


@dataclass(frozen=True)
class TranslationTrial:
    """A translation model, and how it learns."""

    model: EncoderDecoderConfig
    seed: int
    steps: int
    rows: int = 32
    learning_rate: float = RATE


def translator_config(
    width: int = 64, layers: int = 2, heads: int = 4, *, scaled_embedding: bool = True, tied: bool = True
) -> EncoderDecoderConfig:
    """The settings of a small encoder-decoder."""
    stack = StackConfig(layers, "pre", 0.0, AttentionConfig(heads))
    return EncoderDecoderConfig(
        VOCABULARY,
        width,
        48,
        shared_embeddings=tied,
        tied_output=tied,
        encoder=stack,
        decoder=stack,
        embedding=EmbeddingConfig(scaled=scaled_embedding),
    )


def translation_loss(model: nn.Module, batch: PairBatch) -> Tensor:
    """The mean loss per token."""
    logits_BTV = model(batch.source_BS, batch.input_BT, batch.source_lengths_B)
    return F.cross_entropy(logits_BTV.flatten(0, 1), batch.output_BT.flatten(), ignore_index=PADDING)


def held_out_pairs(count: int = 200) -> PairBatch:
    """The same unseen sentences for every model."""
    return batch_of(draw_sentences(count, (0, 0)))


@torch.no_grad()
def translation_scores(model: nn.Module, batch: PairBatch | None = None) -> tuple[float, float]:
    """The loss per token of unseen sentences, and the share of tokens predicted right given those before them."""
    model.eval()
    batch = batch or held_out_pairs()
    logits_BTV = model(batch.source_BS, batch.input_BT, batch.source_lengths_B)
    right = (logits_BTV.argmax(-1) == batch.output_BT)[batch.real_BT].float().mean()
    loss = F.cross_entropy(logits_BTV.flatten(0, 1), batch.output_BT.flatten(), ignore_index=PADDING)
    return shown_loss(float(loss)), float(right)


def learn_translation(model: nn.Module, trial: TranslationTrial) -> Learned:
    """Train a model on sentences that are drawn anew at each step."""

    def loss(step: int) -> Tensor:
        return translation_loss(model, batch_of(draw_sentences(trial.rows, (trial.seed, step))))

    return learn(model, loss, Course(trial.steps, trial.learning_rate))


def trained_translator(bench: Workbench, trial: TranslationTrial) -> EncoderDecoder:
    """The trained model, whose weights are kept."""
    torch.manual_seed(trial.seed)

    def train(model: EncoderDecoder) -> None:
        bench.tell(f"a translator of a little language, seed {trial.seed}")
        learn_translation(model, trial)

    return kept_model(bench.shared, ["translator", asdict(trial)], EncoderDecoder(trial.model), train)
