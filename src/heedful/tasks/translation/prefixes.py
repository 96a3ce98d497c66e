"""How translations begin if a prefix is forced on them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from heedful.config import shown
from heedful.errors import UserError
from heedful.tasks.given_texts import texts_as_list
from heedful.tasks.translation.pieces import Start
from heedful.tasks.translation.segmentation import TextPiece
from heedful.text.cleaning import clean_text
from heedful.text.sentences import sentence_spans

if TYPE_CHECKING:
    from heedful.tasks.translation.pipeline import Translator


def prefix_of_each(prefix: str | Sequence[str], count: int) -> list[str]:
    """The prefix of each of this many texts: the same for all, or one for each."""
    if isinstance(prefix, str):
        return [prefix] * count
    found = texts_as_list(prefix, "prefix")
    if len(found) != count:
        raise UserError(f"there are {count:,} texts, but {len(found):,} prefixes: give one, or one for each text")
    return found


def prefix_starts(translator: Translator, prefix: str, pieces: Sequence[TextPiece]) -> list[Start]:
    """How the translation of each piece begins: each takes as many sentences of the prefix as it has itself.

    If a sentence was cut, nobody knows which words of the prefix belong to which part: the first takes what is left.
    """
    text = clean_text(prefix)
    if not text or not pieces:
        return [Start()] * len(pieces)
    language = translator.config.target_language
    ends = [end for _, end in sentence_spans(text, language)]
    # After a full stop and a space, the next piece begins.
    if not (prefix[-1:].isspace() and len(sentence_spans(text + " X", language)) > len(ends)):
        ends.pop()
    cuts: list[int] = []  # the ends of the parts of the prefix that are whole pieces
    taken = 0
    for piece in pieces[:-1]:
        taken += piece.sentences
        if not piece.sentences or taken > len(ends):
            break
        cuts.append(ends[taken - 1])
    parts = [text[start:end].strip() for start, end in pairwise([0, *cuts, len(text)])]
    starts = [Start(ids, place < len(cuts)) for place, ids in enumerate(translator.tokenizer.encode_batch(parts))]
    longest, most = max(len(start.ids) for start in starts), translator.model.max_length
    if longest > most:
        raise UserError(f"the prefix has {longest} subwords, more than the {most} that the model takes: {shown(text)}")
    return starts + [Start()] * (len(pieces) - len(starts))
