"""How well a language model predicts a text."""

from __future__ import annotations

from dataclasses import asdict

from heedful.tasks.computing import Computing
from heedful.tasks.declaration import Measured, Options, Remark
from heedful.tasks.language_modeling.pipeline import LanguageModel
from heedful.tasks.loading import load_with
from heedful.text.whole_files import read_whole_texts


def evaluate(model: str, options: Options, remark: Remark) -> Measured:
    """Measure a language model as the command line asks."""
    pipeline = load_with(model, Computing(options["device"], options["engine"], options["precision"]))
    assert isinstance(pipeline, LanguageModel)
    result = pipeline.score(read_whole_texts(options["text"], remark, options["encoding"]))
    figures = {**asdict(result), "perplexity": result.perplexity, "bits_per_byte": result.bits_per_byte}
    return figures, [
        f"loss           {result.loss:.4f}  nats per token, {result.tokens:,} tokens",
        f"perplexity     {result.perplexity:.3f}  per token",
        f"bits per byte  {result.bits_per_byte:.4f}  {result.bytes:,} bytes",
    ]
