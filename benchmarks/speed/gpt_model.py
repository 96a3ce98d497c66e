"""A language model of GPT-2's size with random weights, as heedful, Hugging Face and CTranslate2 have it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

import heedful
from benchmarks.speed.corpus import VOCABULARY, WORK
from benchmarks.speed.peer import Peer
from benchmarks.speed.random_model import SPREAD
from heedful.model_folder import ModelConfig, model_card, save_model_folder
from heedful.models.decoder_only import DecoderOnly
from heedful.text.tokenizer import Tokenizer

# So small that nothing measured with it means anything: for trying the program.
QUICK_SETTINGS = {"vocabulary_size": VOCABULARY, "width": 48, "stack": {"num_layers": 2, "attention": {"num_heads": 3}}}


@dataclass(frozen=True)
class GptFolders:
    """The same weights for each system, and how many of them a token needs."""

    heedful: Path
    huggingface: Path
    ctranslate2: dict[str, Path]
    weights_per_token: int
    vocabulary: int


def gpt_folders(tokenizer: Tokenizer, quick: bool) -> GptFolders:
    """The three folders, made anew; the tokenizer is only there because a language model has one."""
    name = "gpt-quick" if quick else "gpt2-small"
    folder, out = WORK / f"random-{name}", WORK / f"{name}-of-others"
    torch.manual_seed(1)
    model = heedful.build("gpt2_small", **(QUICK_SETTINGS if quick else {})).eval()
    assert isinstance(model, DecoderOnly)
    prepare(model)
    config = model.config
    card = model_card(folder.name, "Random weights, for measuring speed.", "heedful bench", config.summary(), {})
    save_model_folder(folder, model, tokenizer, ModelConfig("decoder_only", "language_model", config), card)
    converter = Peer("gpt2_conversion", "huggingface", 2)
    converter.ask("convert", model=str(folder), out=str(out))
    converter.close()
    exports = {precision: out / precision for precision in ("float32", "int8")}
    vocabulary = config.vocabulary_size or 0
    return GptFolders(folder, out / "huggingface", exports, weights_per_token(model), vocabulary)


@torch.no_grad()
def prepare(model: DecoderOnly) -> None:
    """Let one token stand out at each step, as in a trained model, which is never a special one."""
    model.norm.weight.fill_(SPREAD)
    # Their logits are 0 then, and the largest of all is above.
    model.embedding.table.weight[sorted(model.special_tokens.ids)] = 0.0


def weights_per_token(model: DecoderOnly) -> int:
    """The weights of the matrix products of a step; the table is the output layer too."""
    inside = sum(
        each.numel() for name, each in model.named_parameters() if name.startswith("blocks.") and each.dim() == 2
    )
    return inside + model.output.weight.numel()
