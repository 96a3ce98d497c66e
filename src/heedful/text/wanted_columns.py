"""The columns that a task reads from a table file, and what headers usually call them."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from heedful.text.language_names import other_names


class WantedColumns(NamedTuple):
    """The columns that a task reads, in order: what each is called, and its usual names in headers.

    `needed` of them must be there. `spaces` says how a line without tabs may be read: as words, or as a label
    and a text after it. `are_languages` says that a header may name the two by their languages;
    `may_be_numbers` are the roles whose cells may all be numbers though there are other columns.
    """

    roles: tuple[tuple[str, ...], ...]
    expected: str
    needed: int = 2
    spaces: Literal["words", "label"] | None = None
    are_languages: bool = False
    may_be_numbers: tuple[str, ...] = ()

    def placed(self, header: Sequence[str]) -> tuple[int, ...] | None:
        """Which columns of a header have these roles, or None if one that is needed is not there."""
        lower = [name.strip().lower() for name in header]
        places = [next((lower.index(name) for name in names if name in lower), None) for names in self.roles]
        found = [place for place in places if place is not None]
        return tuple(found) if None not in places[: self.needed] else None


TEXT_NAMES = ("text", "sentence", "sentence1", "text1", "premise", "question", "question1", "review", "content")
LABEL_NAMES = ("label", "labels", "class", "category", "sentiment", "intent", "tag", "topic", "stars", "rating")
SECOND_NAMES = ("second text", "text2", "sentence2", "hypothesis", "question2", "second")
WORD_NAMES = ("word", "words", "token", "tokens", "form")
TAG_NAMES = ("tag", "tags", "label", "labels", "ner", "ner_tags", "pos", "upos", "pos_tags")
LABELLED_TEXTS = WantedColumns(
    (LABEL_NAMES, TEXT_NAMES, SECOND_NAMES),
    "a label, a tab and a text per line",
    spaces="label",
    may_be_numbers=("label",),
)
TAGGED_WORDS = WantedColumns(
    (WORD_NAMES, TAG_NAMES), "a word, a tab or a space, and its tag per line", spaces="words", may_be_numbers=("tag",)
)


def wanted_pair(source_language: str | None, target_language: str | None) -> WantedColumns:
    """The columns of a source and its translation, which a header may also call by their languages."""
    languages = [name.lower() if name else "" for name in (source_language, target_language)]
    names = [other_names(name or "") for name in (source_language, target_language)]
    if names[0] == names[1]:  # two kinds of one language, which its name does not tell apart
        names = [[], []]
    by_language = (
        [language, f"translation.{language}", *others] if language else []
        for language, others in zip(languages, names, strict=True)
    )
    usual = (("source", "src"), ("target", "tgt", "trg"))
    roles = tuple((*names, *others) for names, others in zip(usual, by_language, strict=True))
    return WantedColumns(roles, "a source, a tab and its translation per line", are_languages=True)
