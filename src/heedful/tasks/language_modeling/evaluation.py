"""How well a language model predicts a text."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from heedful.tasks.computing import Computing
from heedful.tasks.declaration import Measured, Options, Remark
from heedful.tasks.language_modeling.pipeline import LanguageModel
from heedful.tasks.loading import load_with
from heedful.tasks.remarks import remarks
from heedful.text.document_unit import DocumentUnit
from heedful.text.documents import Documents


def evaluate(model: str, options: Options, remark: Remark) -> Measured:
    """Measure a language model as the command line asks."""
    pipeline = load_with(model, Computing(options["device"], options["engine"], options["precision"]))
    assert isinstance(pipeline, LanguageModel)
    if (options["document"] or pipeline.config.document) == "line":
        texts = _documents(options["text"], "line", remark, options["encoding"])
        remark(
            f"each of the {len(texts):,} lines that are not blank is a document of its own; --document file: each file"
        )
    else:
        texts = _documents(options["text"], "file", remark, options["encoding"])
    with remarks() as found:
        result = pipeline.score(texts)
    for _, about in found:
        remark(f"the text {about}")
    figures = {**asdict(result), "perplexity": result.perplexity, "bits_per_byte": result.bits_per_byte}
    return figures, [
        f"loss           {result.loss:.4f}  nats per token, {result.tokens:,} tokens",
        f"perplexity     {result.perplexity:.3f}  per token",
        f"bits per byte  {result.bits_per_byte:.4f}  {result.bytes:,} bytes",
    ]


def _documents(patterns: Sequence[str], unit: DocumentUnit, remark: Remark, encoding: str | None) -> list[str]:
    """The documents in text files that are not blank, cleaned as for training."""

    def tell(rule: str, action: str, *, file: str, line: int) -> None:
        remark(f"line {line} of {file} was {action}: {rule}")

    with tempfile.TemporaryDirectory() as spooled:
        documents = Documents.from_files(tuple(patterns), unit, Path(spooled), encoding)
        texts: list[str] = []
        parts: list[str] = []
        for part in documents.parts(tell):
            parts.append(part.text)
            if part.ends:
                texts.append("".join(parts))
                parts = []
        return texts
