"""The verbs of all tasks that are computed in one go, between two decoding steps."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from heedful.tasks.declaration import resolve
from heedful.tasks.direct_verb import DirectVerb
from heedful.tasks.registry import all_verbs


@cache
def direct_verbs() -> Mapping[str, DirectVerb]:
    """Name -> how it is computed."""
    return {name: resolve(verb.direct) for name, verb in all_verbs().items() if verb.direct}
