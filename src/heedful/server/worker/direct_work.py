"""How much work it is to compute an input in one go, told before it is computed: others wait meanwhile."""

from __future__ import annotations

from typing import Any

from heedful.server.worker.direct_size import num_patches

# Tokens that are computed in one turn, if one input has no more.
MOST_WORK = 2**13
# Characters that are tokenized in the time that one token is computed in, at a guess.
CHARACTERS_PER_TOKEN = 32


def work_of_text(pipeline: Any, text: Any, options: dict[str, Any]) -> int:
    """That of a text of which no more is computed than the model takes, though all of it is tokenized."""
    length = _characters(text)
    return min(length, int(pipeline.model.max_length)) + length // CHARACTERS_PER_TOKEN


def work_of_whole_text(pipeline: Any, text: Any, options: dict[str, Any]) -> int:
    """That of a text which is computed to its end, however long it is."""
    return _characters(text)


def work_of_image(pipeline: Any, image: str, options: dict[str, Any]) -> int:
    """That of an image, of which all is read."""
    return num_patches(pipeline, options) + len(image) // CHARACTERS_PER_TOKEN


def work_of_a_turn(pipeline: Any, given: Any, options: dict[str, Any]) -> int:
    """That of an input which is computed by itself anyway."""
    return MOST_WORK


def _characters(text: Any) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))
