"""What every encoder of texts computes for clients."""

from __future__ import annotations

from typing import Any

from heedful.tasks.declaration import Options
from heedful.tasks.direct_cost import size_of_text, work_of_text
from heedful.tasks.direct_verb import DirectVerb


def _embed(pipeline: Any, texts: list[Any], options: Options) -> list[Any]:
    vectors = pipeline.embed(texts, **options)
    return [
        (row.astype("<f4").tobytes(), len(pipeline.tokenizer.encode(text)))
        for row, text in zip(vectors, texts, strict=True)
    ]


EMBED = DirectVerb(_embed, True, size_of_text, work_of_text)
