"""Which of the served models a request is for."""

from __future__ import annotations

from collections.abc import Mapping

from heedful.server.front.errors import BAD_REQUEST, NOT_FOUND, ApiError
from heedful.server.messages import ModelCard
from heedful.tasks.registry import all_verbs


def choose_model(models: Mapping[str, ModelCard], name: str | None, verb: str) -> str:
    """The model of that name; without a name the only one that can do what is asked."""
    able = [card.name for card in models.values() if verb in card.verbs]
    if name is None:
        if len(able) == 1:
            return able[0]
        if not able:
            raise ApiError(NOT_FOUND, f"no model that {all_verbs()[verb].does} is served here")
        raise ApiError(BAD_REQUEST, f'several models could do this: set "model" to one of {", ".join(able)}')
    if name not in models:
        raise ApiError(NOT_FOUND, f"there is no model {name!r} here: the models are {', '.join(models)}")
    if name not in able:
        others = f": try {', '.join(able)}" if able else ""
        raise ApiError(BAD_REQUEST, f"{name} is not a model that {all_verbs()[verb].does}{others}")
    return name
