"""A translation model, ready to use."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import overload

from heedful.alignment import Aligner, Alignment
from heedful.config import require
from heedful.data.cleaning import clean_text
from heedful.data.tokenizer import Tokenizer, words
from heedful.decoding.hypothesis import Hypothesis, Request
from heedful.decoding.options import (
    DEFAULT_BEAM,
    DEFAULT_LENGTH_PENALTY,
    DecodingOptions,
    search_options,
)
from heedful.decoding.scheduler import decode
from heedful.errors import UserError
from heedful.inspection.attention_maps import AttentionMaps
from heedful.machine import flushed_denormals, one_thread
from heedful.model_folder import LoadedModel
from heedful.models.memory_plan import sentences_that_fit
from heedful.pipelines.described import Described
from heedful.pipelines.next_words import NextWord, NextWords
from heedful.pipelines.translation import Score as Score
from heedful.pipelines.translation import Translation as Translation
from heedful.pipelines.translation_attention import translation_attention
from heedful.segmentation import Piece, split_line
from heedful.tasks.translation_model import TranslationModel

# What must not stand in a line of output: whatever some reader takes for the end of a line, and tabs, which
# separate its columns.
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
DEFAULT_BATCH_SIZE = 128
# A request's number is that of its text times this, plus that of its piece.
MOST_PIECES = 2**20


@dataclass(frozen=True)
class PreparedText:
    """A text in pieces, the token ids of each, and the ids that its translation is to begin with."""

    pieces: list[Piece]
    sources: list[list[int]]
    prefix: list[int]

    def requests(self, indices: Iterable[int]) -> list[Request]:
        """What is to be decoded, a piece each; a text may be blank, and have none."""
        numbered = zip(indices, self.sources, strict=False)  # there may be more indices than pieces
        return [Request(index, source, () if place else self.prefix) for place, (index, source) in enumerate(numbered)]


class Translator(Described):
    """A translation model, ready to use."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.model: TranslationModel = loaded.network
        self.config = loaded.config
        self.name = loaded.name
        self.tokenizer: Tokenizer = loaded.text_tokenizer
        self._aligner: Aligner | None = None

    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        texts: str,
        options: DecodingOptions | None = None,
        *,
        beam: int | None = None,
        nbest: int | None = None,
        prefix: str = "",
        alignment: bool = False,
        batch_size: int = DEFAULT_BATCH_SIZE,
        first_index: int = 0,
    ) -> Translation: ...

    @overload
    def translate(
        self,
        texts: Iterable[str],
        options: DecodingOptions | None = None,
        *,
        beam: int | None = None,
        nbest: int | None = None,
        prefix: str = "",
        alignment: bool = False,
        batch_size: int = DEFAULT_BATCH_SIZE,
        first_index: int = 0,
    ) -> list[Translation]: ...

    def translate(
        self,
        texts: str | Iterable[str],
        options: DecodingOptions | None = None,
        *,
        beam: int | None = None,
        nbest: int | None = None,
        prefix: str = "",
        alignment: bool = False,
        batch_size: int = DEFAULT_BATCH_SIZE,
        first_index: int = 0,
    ) -> Translation | list[Translation]:
        """Translate texts, in order, or one text; `options` has all of the search, in place of `beam` and `nbest`.

        A blank text stays blank. A text longer than the model can take is translated in pieces. A text that comes
        again is not decoded again, unless samples are drawn. `prefix` is a text that every translation is to begin
        with. `first_index` is the number of the first text in a longer series: samples are drawn by seed and number.
        """
        lines = [texts] if isinstance(texts, str) else list(texts)
        options = search_options(options, beam, nbest)
        prepared = self.prepare(lines, prefix)
        requests = [
            request
            for number, each in enumerate(prepared, first_index)
            for request in each.requests(range(number * MOST_PIECES, (number + 1) * MOST_PIECES))
        ]
        distinct, numbers = _distinct(requests, options)
        with one_thread(), flushed_denormals():
            at_a_time = min(batch_size, sentences_that_fit(self.model, options.rows, options.max_length))
            decoded = {each.index: each.hypotheses for each in decode(self.model, distinct, options, at_a_time)}
            found = {each.index: self._translation(each.source, decoded[each.index], alignment) for each in distinct}
        results = (found[number] for number in numbers)
        joined = [_join(each.pieces, list(islice(results, len(each.pieces)))) for each in prepared]
        return joined[0] if isinstance(texts, str) else joined

    def prepare(self, lines: Sequence[str], prefix: str = "") -> list[PreparedText]:
        """Texts as they are decoded, each in one piece or several; with a warning for each that is too long."""
        pieces = [self._pieces(index, clean_text(line)) for index, line in enumerate(lines)]
        sources = iter(self.tokenizer.encode_batch([piece.text for group in pieces for piece in group]))
        start = self.tokenizer.encode(clean_text(prefix)) if prefix.strip() else []
        if start and getattr(self.model, "shortlist", None):
            raise UserError("a prefix may need any subword: load the model without its shortlist")
        if len(start) > self.model.max_length:
            raise UserError(
                f"the prefix has {len(start)} subwords, more than the {self.model.max_length} that the model takes"
            )
        return [PreparedText(group, list(islice(sources, len(group))), start) for group in pieces]

    def finish(self, prepared: PreparedText, found: Sequence[list[Hypothesis]], alignment: bool) -> Translation:
        """The translation of a text, from the hypotheses for each of its pieces."""
        pairs = zip(prepared.sources, found, strict=True)
        return _join(prepared.pieces, [self._translation(source, each, alignment) for source, each in pairs])

    def alternatives(self, text: str, prefix: str = "", count: int = 8) -> list[NextWord]:
        """The likeliest words, up to `count`, that could come after the beginning `prefix` of the translation."""
        require(count, "count", 1)
        (prepared,) = self.prepare([text], prefix)
        if not prepared.sources:
            return []
        found = NextWords(self.model, self.tokenizer, prepared.sources[0], prepared.prefix).find(count)
        if prefix[-1:].isspace():
            found = [replace(word, text=word.text.removeprefix(" ")) for word in found]
        return found

    def text_of(self, tokens: Sequence[int]) -> str:
        """Target tokens as one line of text."""
        return _BREAKS.sub(" ", self.tokenizer.decode(tokens))

    def attention(self, text: str, target: str | None = None, *, beam: int = DEFAULT_BEAM) -> AttentionMaps:
        """What the model attends to while it translates a text, into `target` or what it finds itself."""
        return translation_attention(self, text, target, beam)

    def _pieces(self, index: int, line: str) -> list[Piece]:
        """The line itself, its pieces if it is too long, or nothing if it is blank."""
        if not line:
            return []
        longest = self.model.max_length
        if len(self.tokenizer.encode(line)) <= longest:
            return [Piece(line, "")]
        pieces = split_line(line, longest, lambda text: len(self.tokenizer.encode(text)))
        warnings.warn(LongTextWarning(index, len(pieces), longest), stacklevel=3)
        return pieces

    def _translation(self, source: Sequence[int], hypotheses: list[Hypothesis], alignment: bool) -> Translation:
        alignments: Sequence[Alignment | None] = [None] * len(hypotheses)
        if alignment:
            self._aligner = self._aligner or Aligner(self.model, self.tokenizer)
            alignments = self._aligner.align([list(source)] * len(hypotheses), [each.tokens for each in hypotheses])
        nbest = [
            Translation(
                self.text_of(each.tokens),
                each.score,
                [self.tokenizer.token_text(token) for token in each.tokens],
                each.token_scores,
                pairs,
            )
            for each, pairs in zip(hypotheses, alignments, strict=True)
        ]
        best = nbest[0]
        return Translation(best.text, best.score, best.tokens, best.token_scores, best.alignment, nbest)

    @overload
    def score(self, sources: str, targets: str, *, length_penalty: float = ...) -> Score: ...  # type: ignore[overload-overlap]

    @overload
    def score(self, sources: Sequence[str], targets: Sequence[str], *, length_penalty: float = ...) -> list[Score]: ...

    def score(
        self,
        sources: str | Sequence[str],
        targets: str | Sequence[str],
        *,
        length_penalty: float = DEFAULT_LENGTH_PENALTY,
    ) -> Score | list[Score]:
        """The log-probabilities of given translations, or of one, and their scores as decoding has them."""
        DecodingOptions(length_penalty=length_penalty)  # checks it
        if isinstance(sources, str) and isinstance(targets, str):
            return self.score([sources], [targets], length_penalty=length_penalty)[0]
        if isinstance(sources, str) or isinstance(targets, str):
            raise UserError("one text, but several of the other side: give one of each, or a list of each")
        from heedful.pipelines.translation_scoring import score_pairs  # here: translating must not wait for it

        return score_pairs(self.model, self.tokenizer, sources, targets, length_penalty)


class LongTextWarning(UserWarning):
    """The text of that index was longer than the model can take, and was translated in pieces."""

    def __init__(self, index: int, pieces: int, longest: int) -> None:
        super().__init__(f"is longer than the {longest} subwords that the model takes: translated in {pieces} pieces")
        self.index = index


def _distinct(requests: list[Request], options: DecodingOptions) -> tuple[list[Request], list[int]]:
    """The requests without those that repeat an earlier one, and for each the number of the one that answers it.

    A search finds the same for the same ids. Samples are drawn by number: there, none stands for another.
    """
    if options.sampling is not None:
        return requests, [request.index for request in requests]
    first: dict[tuple[tuple[int, ...], tuple[int, ...]], Request] = {}
    numbers = [first.setdefault((tuple(each.source), tuple(each.prefix)), each).index for each in requests]
    return list(first.values()), numbers


def _join(pieces: list[Piece], translations: list[Translation]) -> Translation:
    """The translation of a text from those of its pieces."""
    if len(translations) == 1:
        return translations[0]
    if not translations:
        return Translation("")
    count = min(len(each.nbest) for each in translations)
    nbest = [_join_hypotheses(pieces, [each.nbest[rank] for each in translations]) for rank in range(count)]
    best = nbest[0]
    return Translation(best.text, best.score, best.tokens, best.token_scores, best.alignment, nbest)


def _join_hypotheses(pieces: list[Piece], hypotheses: list[Translation]) -> Translation:
    alignment: Alignment | None = None if hypotheses[0].alignment is None else []
    source = target = ""
    for piece, hypothesis in zip(pieces, hypotheses, strict=True):
        source, target = source + piece.before, target + piece.before
        if alignment is not None:
            # A piece that is cut out of a word goes on with the word that came before it.
            offsets = [len(words(text)) - bool(words(text) and not piece.before) for text in (source, target)]
            alignment += [(s + offsets[0], t + offsets[1]) for s, t in hypothesis.alignment or []]
        source, target = source + piece.text, target + hypothesis.text
    return Translation(
        target,
        sum(each.score for each in hypotheses),
        [token for each in hypotheses for token in each.tokens],
        [score for each in hypotheses for score in each.token_scores],
        alignment,
    )
