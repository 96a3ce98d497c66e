"""Hugging Face MarianMT, trained as its Trainer does: random padded batches, label smoothing, clipping, fused AdamW."""

from __future__ import annotations

from padded_batches import END, PAD, START, Batch
from torch import Tensor
from training_loop import DROPOUT, LABEL_SMOOTHING, Size, Step, fused_adamw, ordinary_step, serve_training
from transformers import MarianConfig, MarianMTModel
from transformers.trainer_pt_utils import LabelSmoother


def make_step(size: Size) -> Step:
    """A Marian model of that size, and a step of it."""
    model = MarianMTModel(
        MarianConfig(
            vocab_size=size["vocabulary"],
            d_model=size["width"],
            encoder_layers=size["layers"],
            decoder_layers=size["layers"],
            encoder_attention_heads=size["heads"],
            decoder_attention_heads=size["heads"],
            encoder_ffn_dim=size["inner"],
            decoder_ffn_dim=size["inner"],
            activation_function="relu",
            dropout=DROPOUT,
            scale_embedding=True,
            pad_token_id=PAD,
            eos_token_id=END,
            decoder_start_token_id=START,
            forced_eos_token_id=None,
            use_cache=False,
        )
    )
    smoother = LabelSmoother(epsilon=LABEL_SMOOTHING)

    def loss(batch: Batch) -> Tensor:
        labels = batch.labels_BT.masked_fill(batch.labels_BT == PAD, smoother.ignore_index)
        outputs = model(
            input_ids=batch.source_BS,
            attention_mask=(batch.source_BS != PAD).long(),
            decoder_input_ids=batch.target_BT,
        )
        return smoother(outputs, labels)

    return ordinary_step(model, loss, fused_adamw(model))


if __name__ == "__main__":
    serve_training(make_step, None, "transformers")
