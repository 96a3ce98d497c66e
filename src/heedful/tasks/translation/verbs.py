"""What a translation model computes for clients in one go."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from heedful.tasks.declaration import Options
from heedful.tasks.direct_cost import size_of_alternatives, work_of_a_turn
from heedful.tasks.direct_verb import DirectVerb


def _alternatives(pipeline: Any, texts: list[str], options: Options) -> list[Any]:
    return [[asdict(each) for each in pipeline.alternatives(text, **options)] for text in texts]


ALTERNATIVES = DirectVerb(_alternatives, False, size_of_alternatives, work_of_a_turn)
