"""What is computed for clients in one go rather than step by step."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from heedful.machine.torch_needed import needs_torch
from heedful.tasks.declaration import Options, resolve
from heedful.tasks.direct_cost import check_weights, size_of_attention, size_of_explanation, work_of_a_turn
from heedful.tasks.registry import all_verbs
from heedful.tasks.remarks import remarks

# From a pipeline, inputs and options to an answer for each input.
Compute = Callable[[Any, list[Any], Options], list[Any]]
# From a pipeline, an input and options to the bytes needed to compute it.
Size = Callable[[Any, Any, Options], int]
# The same to the tokens that the work on it is worth.
Work = Callable[[Any, Any, Options], int]


@dataclass(frozen=True)
class DirectVerb:
    """How a verb is computed, whether inputs of several requests may be batched together, and its memory and work."""

    compute: Compute
    together: bool = True
    size: Size = lambda pipeline, given, options: 0
    work: Work = lambda pipeline, given, options: 1


@cache
def direct_verbs() -> Mapping[str, DirectVerb]:
    """Name -> how it is computed, for all verbs that are computed in one go."""
    return {name: resolve(verb.direct) for name, verb in all_verbs().items() if verb.direct}


def _attention(pipeline: Any, texts: list[str], options: Options) -> list[bytes]:
    answers = []
    for text in texts:
        with remarks() as found:
            maps = pipeline.attention(text, **options)
        answers.append(attention_document(maps, [f"the text {remark}" for _, remark in found]))
    return answers


def attention_document(maps: Any, found: list[str]) -> bytes:
    """The answer as bytes: it is large, and the front process need not know what it holds."""
    # If no translation was given, its length is known only now.
    check_weights(sum(each.weights.size for each in maps.maps))
    return json.dumps({**maps.to_json(), "remarks": found}).encode()


def _explain(pipeline: Any, texts: list[str], options: Options) -> list[bytes]:
    answers = []
    for text in texts:
        with remarks() as found:
            page = explained_with(pipeline, text, options["switches"], target=options["target"])
        answers.append(json.dumps({**page, "remarks": [f"the text {remark}" for _, remark in found]}).encode())
    return answers


@needs_torch("following a computation")
def explained_with(pipeline: Any, given: Any, switches: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """The data of the page that explains a computation, with switches as a client sends them."""
    from heedful.tasks.explaining import explained, switches_of

    return explained(pipeline, given, switches_of(switches), **options).to_json()


ATTENTION = DirectVerb(_attention, False, size_of_attention, work_of_a_turn)
EXPLAIN = DirectVerb(_explain, False, size_of_explanation, work_of_a_turn)
