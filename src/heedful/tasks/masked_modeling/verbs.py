"""What a masked language model computes for clients."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from heedful.tasks.declaration import Options
from heedful.tasks.direct_cost import size_of_text, work_of_a_turn
from heedful.tasks.direct_verb import DirectVerb


def _fill(pipeline: Any, texts: list[str], options: Options) -> list[Any]:
    return [{"masks": [[asdict(each) for each in group] for group in pipeline.fill(text, **options)]} for text in texts]


FILL = DirectVerb(_fill, False, size_of_text, work_of_a_turn)
