"""What is wrong with the labels, sentences or words of a whole training set."""

from collections.abc import Sequence

from heedful.errors import UserError
from heedful.tasks.label_list import label_list
from heedful.tasks.labelling.files import LabelledExample, LabelledFiles
from heedful.tasks.labelling.swapped_columns import swapped_columns
from heedful.tasks.unknown_labels import listed

# If there are more words in a sentence, on average, the blank lines between them are missing.
MOST_WORDS = 200


class SpacedWords:
    """Counts words with a space inside, which a tagger sees in training but never in a text."""

    def __init__(self) -> None:
        self._count, self._first = 0, ""

    def look(self, example: LabelledExample) -> None:
        """Take in the words of a sentence."""
        for number, word in enumerate(example.texts):
            if word.split() != [word]:
                self._count += 1
                self._first = self._first or f"{word!r} in {example.places()[number]}"

    def warning(self) -> list[str]:
        """A line on them, if there are any."""
        if not self._count:
            return []
        words = "words have" if self._count > 1 else "word has"
        return [
            f"warning: {self._count:,} {words} a space inside, the first {self._first}: `heedful tag` splits texts "
            "at every space, so that it never sees such words; give each of their parts a line of its own"
        ]


def warning_of_missing_blank_lines(corpus: LabelledFiles, sentences: int, words: int) -> list[str]:
    """A line on a tagger's files that are one long sentence each."""
    if not _are_sentences_of_files(corpus, sentences) or words <= MOST_WORDS * sentences:
        return []
    return [f"warning: {_no_blank_line(corpus)}, so that {words:,} words are read as {sentences:,} sentences"]


def warning_of_unseen(labels: Sequence[str]) -> list[str]:
    """A line on labels whose texts are all held out, as happens if they are few, or all the same."""
    names = [label_list([label]) for label in labels]
    return [f"labels without any example to train on: {listed(names)}"] if names else []


def single_label(corpus: LabelledFiles, examples: int, label: str) -> UserError:
    """The error that says that all examples have the same label."""
    number, what = (0, "a classifier") if corpus.unit == "text" else (1, "a tagger")
    place = corpus.layouts[0].columns[number]
    column = f"column {place + 1}" if isinstance(place, int) else place
    return UserError(
        f"all {examples:,} examples of {corpus.files[0].shown_name} have the label {label!r}: "
        f"{what} needs at least two labels; the label is read from {column}, which --columns can change"
    )


def single_example(corpus: LabelledFiles, examples: int, one: LabelledExample, labels: Sequence[str]) -> UserError:
    """The error that says why nothing can be held out: all examples are like this one, or there is only this one."""
    what = "text" if corpus.unit == "text" else "sentence"
    alike = f"the training files hold a single distinct {what}, so none can be held out for validation"
    if corpus.unit == "word":
        # In each sentence the same words, and more tags than words: those are the words.
        words = len(set(one.texts))
        if len(labels) > words:
            counted = f"{len(labels):,} tags for {words:,} different words"
            return UserError(f"{alike}: {swapped_columns(counted, corpus)}")
        if _are_sentences_of_files(corpus, examples):
            return UserError(
                f"{_no_blank_line(corpus)}, so that all {len(one.texts):,} words are one sentence, and none can be "
                "held out for validation: put a blank line after each sentence"
            )
    return UserError(f"{alike}: give more {what}s, or validation files")


def _are_sentences_of_files(corpus: LabelledFiles, sentences: int) -> bool:
    """Whether each file is one sentence, though blank lines could divide it."""
    return corpus.unit == "word" and sentences <= len(corpus.files) and corpus.layouts[0].kind != "json"


def _no_blank_line(corpus: LabelledFiles) -> str:
    more = " and the other files" if len(corpus.files) > 1 else ""
    return f"no blank line was found between sentences in {corpus.files[0].shown_name}{more}"
