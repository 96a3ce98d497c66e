"""A decoder-only model of heedful as a GPT2LMHeadModel of Hugging Face, and that as models of CTranslate2."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ctranslate2.converters import TransformersConverter
from protocol import serve
from safetensors.torch import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

# Theirs -> ours, in a block; Hugging Face stores linear layers input first.
NORMS = {"ln_1": "attention_residual.norm", "ln_2": "feed_forward_residual.norm"}
LINEARS = {
    "attn.c_attn": "attention.query_key_value_projection",
    "attn.c_proj": "attention.output_projection",
    "mlp.c_fc": "feed_forward.inner_projection",
    "mlp.c_proj": "feed_forward.output_projection",
}


def convert(model: str, out: str) -> dict[str, Any]:
    """Write the folders huggingface, float32 and int8."""
    settings = json.loads(Path(model, "config.json").read_text(encoding="utf-8"))["model"]
    target = Path(out)
    shutil.rmtree(target, ignore_errors=True)
    network = GPT2LMHeadModel(gpt2_config(settings))
    tensors = renamed(load_file(Path(model, "model.safetensors")), settings["stack"]["num_layers"])
    missing, unexpected = network.load_state_dict(tensors, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    network.tie_weights()
    network.eval().save_pretrained(target / "huggingface")
    _tokenizer(settings["vocabulary_size"], settings["special_tokens"]).save_pretrained(target / "huggingface")
    for precision in ("float32", "int8"):
        TransformersConverter(str(target / "huggingface")).convert(str(target / precision), quantization=precision)
    return {}


def gpt2_config(settings: dict[str, Any]) -> GPT2Config:
    """The settings as Hugging Face has them."""
    stack, special = settings["stack"], settings["special_tokens"]
    assert settings["positions"] == "learned" and settings["tied_output"] and not settings["embedding"]["scaled"]
    assert stack["feed_forward"]["activation"] == "gelu_tanh" and stack["norm"] == "pre"
    return GPT2Config(
        vocab_size=settings["vocabulary_size"],
        n_positions=settings["max_length"],
        n_embd=settings["width"],
        n_layer=stack["num_layers"],
        n_head=stack["attention"]["num_heads"],
        n_inner=stack["feed_forward"]["inner_width"],
        activation_function="gelu_new",
        layer_norm_epsilon=stack["norm_epsilon"],
        bos_token_id=special["start"],
        eos_token_id=special["end"],
        pad_token_id=special["pad"],
    )


def renamed(ours: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """The tensors by Hugging Face's names."""
    found = {
        "transformer.wte.weight": ours["embedding.table.weight"],
        "transformer.wpe.weight": ours["positions.table"],
        "transformer.ln_f.weight": ours["norm.weight"],
        "transformer.ln_f.bias": ours["norm.bias"],
    }
    for layer in range(layers):
        for kind in ("weight", "bias"):
            for theirs, place in NORMS.items():
                found[f"transformer.h.{layer}.{theirs}.{kind}"] = ours[f"blocks.{layer}.{place}.{kind}"]
            for theirs, place in LINEARS.items():
                tensor = ours[f"blocks.{layer}.{place}.{kind}"]
                found[f"transformer.h.{layer}.{theirs}.{kind}"] = tensor.T.contiguous() if kind == "weight" else tensor
    return found


def _tokenizer(vocabulary: int, special: dict[str, Any]) -> PreTrainedTokenizerFast:
    """One with a name for each id, by which CTranslate2 knows tokens."""
    names = {str(number): number for number in range(vocabulary)}
    marks = {
        f"{theirs}_token": str(special[ours]) for theirs, ours in (("bos", "start"), ("eos", "end"), ("unk", "pad"))
    }
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel(names, str(special["pad"]))), **marks)


if __name__ == "__main__":
    serve({"convert": convert})
