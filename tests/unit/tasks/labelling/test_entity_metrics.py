"""Entities as conlleval counts them: by hand, and beside the chunk rules of its script, written out here."""

import random

import pytest


def conlleval_chunks(tags: list[str]) -> set[tuple[int, int, str]]:
    """The rules of conlleval.pl, endOfChunk and startOfChunk, line by line."""
    found, start = set(), None
    previous, previous_type = "O", ""
    for place, tag in enumerate([*tags, "O"]):
        now, _, now_type = tag.partition("-")
        ends = (previous, now) in {("B", "B"), ("B", "S"), ("B", "O"), ("I", "B"), ("I", "S"), ("I", "O")}
        ends = ends or previous in ("E", "S") or (previous != "O" and previous_type != now_type)
        starts = now in ("B", "S")
        starts = starts or (previous in ("E", "S", "O") and now in ("E", "I"))
        starts = starts or (now != "O" and previous_type != now_type)
        if start is not None and ends:
            found.add((start, place, previous_type))
            start = None
        if starts:
            start = place
        previous, previous_type = now, now_type
    return found


@pytest.mark.parametrize("prefixes", ["BI", "BIES", "I"])
def test_against_the_rules_of_conlleval(prefixes: str) -> None:
    from heedful.tasks.labelling.entity_metrics import entities, entity_evaluation

    draw = random.Random(3)
    tags = ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in ("PER", "LOC"))]
    pairs = [[draw.choices(tags, k=draw.randint(1, 9)) for _ in range(2)] for _ in range(700)]
    right = wanted = answered = 0
    for sentence, answer in pairs:
        assert set(entities(sentence)) == conlleval_chunks(sentence), sentence
        theirs, ours = conlleval_chunks(sentence), conlleval_chunks(answer)
        right, wanted, answered = right + len(theirs & ours), wanted + len(theirs), answered + len(ours)
    result = entity_evaluation([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    precision, recall = right / answered, right / wanted
    assert right > 20
    assert result.overall.precision == pytest.approx(precision) and result.overall.recall == pytest.approx(recall)
    assert result.overall.f1 == pytest.approx(2 * precision * recall / (precision + recall))
    assert result.overall.count == wanted == sum(each.count for each in result.per_type)


def test_by_hand() -> None:
    from heedful.tasks.labelling.entity_metrics import entity_evaluation

    wanted = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "B-LOC", "O"]]
    answered = [["B-PER", "I-PER", "O", "B-PER"], ["B-LOC", "I-LOC", "O"]]
    result = entity_evaluation(wanted, answered)
    assert [(each.name, each.precision, each.recall, each.count, each.answered) for each in result.per_type] == [
        ("LOC", 0.0, 0.0, 3, 1),
        ("PER", 0.5, 1.0, 1, 2),
    ]
    assert (result.overall.precision, result.overall.recall) == (1 / 3, 1 / 4)
    assert result.overall.f1 == pytest.approx(2 / 7)
    assert result.macro_average.f1 == pytest.approx((0 + 2 / 3) / 2)
    assert result.weighted_average.f1 == pytest.approx((3 * 0 + 1 * 2 / 3) / 4)


def test_an_entity_does_not_go_on_in_the_next_sentence() -> None:
    from heedful.tasks.labelling.entity_metrics import entity_evaluation

    result = entity_evaluation([["B-PER"], ["I-PER"]], [["B-PER"], ["I-PER"]])
    assert result.overall.count == 2


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["O", "B-PER", "I-PER"], True),
        (["B", "I", "O"], True),
        (["O", "S-X", "B-X", "E-X", "I-X"], True),
        (["I-PER", "O"], True),
        (["O", "PLUS", "MINUS"], False),
        (["NOUN", "VERB"], False),
        (["O"], False),
        (["S-BAR", "E-MAIL"], False),
    ],
)
def test_which_tags_are_of_entities(tags: list[str], expected: bool) -> None:
    from heedful.tasks.labelling.entity_metrics import are_entity_tags

    assert are_entity_tags(tags) == expected
