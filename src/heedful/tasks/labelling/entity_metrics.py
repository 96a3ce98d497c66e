"""How many entities a tagger finds, as conlleval counts them: an entity is right if its words and its type are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from heedful.tasks.classification_metrics import EntityEvaluation, averages, named_scores, scores

OUTSIDE = "O"
# B begins an entity, I is inside one, E ends one of several words, S is one of a single word. _ENDS has, for each of
# them, the tags that end the entity even if the type stays the same. A tag that does not continue an entity begins one.
_TAG = re.compile("([BIES])(?:-(.+))?")
_ENDS = {"B": "BSO", "I": "BSO", "E": "BIESO", "S": "BIESO"}


class Entity(NamedTuple):
    """Some words of a sentence, from `start` up to but not including `end`, and their type."""

    start: int
    end: int
    kind: str


def are_entity_tags(tags: Iterable[str]) -> bool:
    """Whether tags say where entities begin and end: O, and B-, I-, E- or S- with a type."""
    named = [tag for tag in tags if tag != OUTSIDE]
    return bool(named) and all(_TAG.fullmatch(tag) for tag in named) and any(tag[0] in "BI" for tag in named)


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities of a sentence by its tags (IOB1, IOB2, BIOES); inconsistent tags are read leniently."""
    found: list[Entity] = []
    start, before, kind_before = 0, OUTSIDE, ""
    inside = False
    for place, tag in enumerate([*tags, OUTSIDE]):
        match = _TAG.fullmatch(tag)
        now, kind = (match[1], match[2] or "") if match else (OUTSIDE, "")
        if inside and (now in _ENDS[before] or kind != kind_before):
            found.append(Entity(start, place, kind_before))
            inside = False
        if now != OUTSIDE and not inside:
            start, inside = place, True
        before, kind_before = now, kind
    return found


def entity_evaluation(wanted: Iterable[Sequence[str]], answered: Iterable[Sequence[str]]) -> EntityEvaluation:
    """The entity scores of the tags of some sentences."""
    right: Counter[str] = Counter()
    there: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for tags, answers in zip(wanted, answered, strict=True):
        ours, theirs = set(entities(answers)), set(entities(tags))
        right.update(each.kind for each in ours & theirs)
        there.update(each.kind for each in theirs)
        said.update(each.kind for each in ours)
    kinds = sorted(there.keys() | said.keys())
    per_type = [named_scores(kind, right[kind], said[kind], there[kind]) for kind in kinds]
    return EntityEvaluation(scores(right.total(), said.total(), there.total()), *averages(per_type), per_type)
