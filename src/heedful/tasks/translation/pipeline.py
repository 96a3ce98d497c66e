"""A translation model, ready to use."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, overload

from heedful.config import require_whole
from heedful.decoding.hypothesis import Hypothesis
from heedful.decoding.options import (
    DEFAULT_BEAM,
    DEFAULT_LENGTH_PENALTY,
    MOST_HYPOTHESES,
    DecodingOptions,
    search_options,
)
from heedful.errors import UserError
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.machine.torch_needed import needs_torch
from heedful.models.memory_plan import sentences_that_fit
from heedful.tasks.computing import check_batch_size
from heedful.tasks.given_texts import one_text, texts_as_list
from heedful.tasks.tracing import Traceable
from heedful.tasks.translation.answers import Alignment, UnevenPairWarning
from heedful.tasks.translation.answers import LongTextWarning as LongTextWarning
from heedful.tasks.translation.answers import Score as Score
from heedful.tasks.translation.answers import Translation as Translation
from heedful.tasks.translation.next_words import NextWord, NextWords
from heedful.tasks.translation.pieces import TextInPieces, distinct_requests, join_pieces
from heedful.tasks.translation.prefixes import prefix_of_each, prefix_starts
from heedful.tasks.translation.scoring import score_pairs
from heedful.tasks.translation.seam import PairComputation, pair_computation
from heedful.tasks.translation.segmentation import Split, SplitLine, Splitter, check_split, join_lines
from heedful.text.cleaning import clean_text
from heedful.text.sentences import sentence_spans
from heedful.text.tokenizer import Tokenizer

# Whatever needs torch is imported where a model computes, so this file can be imported without torch.
if TYPE_CHECKING:
    from heedful.inspection.attention.maps import AttentionMaps
    from heedful.inspection.trace.trace import Trace
    from heedful.model_folder import LoadedModel
    from heedful.tasks.translation.task import TranslationModel

# What must not occur in a line of output: anything that some reader takes for the end of a line, and tabs, which
# separate columns.
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
DEFAULT_BATCH_SIZE = 128
# A request's number is its text's number times this, plus its piece's.
MOST_PIECES = 2**20


class Translator(Traceable):
    """A translation model, ready to use."""

    tracing = "heedful.tasks.translation.tracing:TRACING"

    def __init__(self, loaded: LoadedModel) -> None:
        self.model: TranslationModel = loaded.network
        self.config = loaded.config
        self.name = loaded.name
        self.tokenizer: Tokenizer = loaded.text_tokenizer

    @cached_property
    def computation(self) -> PairComputation:
        """What computes with the model, apart from decoding; made when it is first needed."""
        return pair_computation(self.model)

    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        texts: str,
        options: DecodingOptions | None = None,
        *,
        beam: int | None = None,
        nbest: int | None = None,
        prefix: str | Sequence[str] = "",
        alignment: bool = False,
        split: Split = "auto",
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
        prefix: str | Sequence[str] = "",
        alignment: bool = False,
        split: Split = "auto",
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
        prefix: str | Sequence[str] = "",
        alignment: bool = False,
        split: Split = "auto",
        batch_size: int = DEFAULT_BATCH_SIZE,
        first_index: int = 0,
    ) -> Translation | list[Translation]:
        """Translate one text, or several in order; `options` has all search options, in place of `beam` and `nbest`.

        A blank text stays blank. A text with more sentences or subwords than 99 % of the training lines is translated
        in pieces like those (`split` "auto"); "sentences" splits every text into its sentences, "none" only texts
        longer than the model can take. A repeated text is not decoded again, unless samples are drawn. `prefix` is
        what every translation must begin with, or a list with one for each text. `first_index` is the number of the
        first text in a longer series: samples are drawn by seed and number.
        """
        from heedful.decoding.run import decode

        lines = texts_as_list(texts)
        options = search_options(options, beam, nbest)
        check_batch_size(batch_size)
        prepared = self.prepare(lines, prefix, split)
        requests = [
            request
            for number, each in enumerate(prepared, first_index)
            for request in each.requests(range(number * MOST_PIECES, (number + 1) * MOST_PIECES))
        ]
        distinct, numbers = distinct_requests(requests, options)
        with one_thread(), flushed_denormals():
            at_a_time = min(batch_size, sentences_that_fit(self.model, options.rows, options.max_length))
            decoded = {each.index: each.hypotheses for each in decode(self.model, distinct, options, at_a_time)}
            found = {each.index: self.translated(each.source, decoded[each.index], alignment) for each in distinct}
        results = (found[number] for number in numbers)
        ranked = options.sampling is None
        joined = [join_pieces(each.pieces, list(islice(results, len(each.pieces))), ranked) for each in prepared]
        return joined[0] if isinstance(texts, str) else joined

    def prepare(
        self, lines: Sequence[str], prefix: str | Sequence[str] = "", split: Split = "auto"
    ) -> list[TextInPieces]:
        """Texts as they are decoded, each in one piece or several, with a warning for each that is too long."""
        split, prefixes = check_split(split), prefix_of_each(prefix, len(lines))
        texts = [[clean_text(row) for row in line.strip().split("\n")] for line in lines]
        whole = iter(self.tokenizer.encode_batch([row for rows in texts for row in rows if row]))
        splitter = self._splitter()
        prepared = []
        for index, rows in enumerate(texts):
            ids = list(islice(whole, sum(map(bool, rows))))
            line = join_lines(
                rows, [splitter.split(row, each, split) for row, each in zip(filter(None, rows), ids, strict=True)]
            )
            self._warn_of_length(index, line)
            prepared.append(TextInPieces(line.pieces, line.sources, prefix_starts(self, prefixes[index], line.pieces)))
        return prepared

    def pieces_of_pair(
        self, source: str, target: str, split: Split = "auto", index: int = 0
    ) -> list[tuple[list[int], list[int]]]:
        """The ids of a text and its translation: by pieces, if the translation has as many sentences, else undivided.

        If a text in pieces is left undivided, there is a warning with the `index` of the pair.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LongTextWarning)
            (prepared,) = self.prepare([source], split=split)
        text = clean_text(target)
        spans = sentence_spans(text, self.config.target_language)
        if len(prepared.pieces) > 1 and len(spans) == len(prepared.pieces):
            targets = self.tokenizer.encode_batch([text[start:end] for start, end in spans])
            return list(zip(prepared.sources, targets, strict=True))
        if len(prepared.pieces) > 1:
            sentences = f"{len(spans)} sentence{'s' * (len(spans) != 1)}"
            uneven = f"is translated in {len(prepared.pieces)} pieces, but its target has {sentences}: taken as a whole"
            warnings.warn(UnevenPairWarning(index, uneven), stacklevel=3)
        whole = prepared.sources if len(prepared.sources) == 1 else [self.tokenizer.encode(clean_text(source))]
        return [(whole[0], self.tokenizer.encode(text))]

    def alternatives(self, text: str, prefix: str = "", count: int = 8) -> list[NextWord]:
        """The likeliest words, up to `count`, that could follow the beginning `prefix` of the translation."""
        require_whole(count, "count", 1, MOST_HYPOTHESES)
        if getattr(self.model, "shortlist", None):
            raise UserError("a next word may be any subword: load the model without its shortlist")
        (prepared,) = self.prepare([one_text(text)], one_text(prefix, "prefix"))
        if not prepared.sources:
            return []
        place = next(n for n, start in enumerate(prepared.starts) if not start.whole)
        found = NextWords(self.model, self.tokenizer, prepared.sources[place], prepared.starts[place].ids).find(count)
        if prefix[-1:].isspace():
            found = [replace(word, text=word.text.removeprefix(" ")) for word in found]
        return found

    def text_of(self, tokens: Sequence[int]) -> str:
        """Target tokens as one line of text."""
        return _BREAKS.sub(" ", self.tokenizer.decode(tokens))

    @needs_torch("looking into attention")
    def attention(
        self, text: str, target: str | None = None, *, beam: int = DEFAULT_BEAM, split: Split = "auto"
    ) -> AttentionMaps:
        """What the model attends to while it translates a text, into `target` or its own translation.

        If the text is translated in pieces, no piece attends to another.
        """
        from heedful.tasks.translation.attention import translation_attention

        if target is not None:
            one_text(target, "target")
        return translation_attention(self, one_text(text), target, beam, split)

    @needs_torch("tracing a model")
    def trace(self, text: str, target: str | None = None, *, beam: int = DEFAULT_BEAM, split: Split = "auto") -> Trace:
        """Every tensor of a translation into `target` or the model's own, by name; the text must be in one piece."""
        from heedful.tasks.translation.tracing import translation_trace

        return translation_trace(self, one_text(text), target, beam, split)

    def _splitter(self) -> Splitter:
        encode = self.tokenizer.encode_batch
        return Splitter(encode, self.model.max_length, self.config.source_language, self.config.training_lines)

    def _warn_of_length(self, index: int, line: SplitLine) -> None:
        """Warn of a sentence that had to be cut between words, or that is longer than the training lines."""
        most, seen = self.model.max_length, self.config.training_lines
        size = f"has {line.longest} subwords" + (" in one sentence" if len(line.pieces) > 1 else "")
        if line.is_forced:
            takes = f"and the model takes {most}"
            why = (
                takes if line.longest > most or not seen else f"but the longest training line had {seen.subwords_most}"
            )
            text = (
                f"has {line.longest} subwords without a sentence end, {why}: translated in {len(line.pieces)} pieces, "
                "cut within the sentence, and some of it may be lost"
            )
        elif seen and line.longest > seen.subwords_most:
            text = f"{size}, but the longest training line had {seen.subwords_most}: some of it may be lost"
        elif seen and len(line.pieces) > 1 and line.longest > seen.subwords_99:
            text = f"{size}, but 99 % of the training lines had at most {seen.subwords_99}: some of it may be lost"
        else:
            return
        warnings.warn(LongTextWarning(index, text), stacklevel=3)

    def translated(self, source: Sequence[int], hypotheses: list[Hypothesis], alignment: bool) -> Translation:
        """The translation of a piece, from the hypotheses that a search found for it."""
        alignments: Sequence[Alignment | None] = [None] * len(hypotheses)
        if alignment:
            from heedful.tasks.translation.alignment import Aligner  # it needs numpy, which most translations do not

            alignments = Aligner(self.computation, self.tokenizer).align(
                [list(source)] * len(hypotheses), [each.tokens for each in hypotheses]
            )
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
    def score(self, sources: str, targets: str, *, length_penalty: float = ..., first_index: int = ...) -> Score: ...  # type: ignore[overload-overlap]

    @overload
    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, length_penalty: float = ..., first_index: int = ...
    ) -> list[Score]: ...

    def score(
        self,
        sources: str | Sequence[str],
        targets: str | Sequence[str],
        *,
        length_penalty: float = DEFAULT_LENGTH_PENALTY,
        first_index: int = 0,
    ) -> Score | list[Score]:
        """The log-probabilities of one or several given translations, and their scores as in decoding.

        `first_index` is the number of pairs before these in a longer series.
        """
        DecodingOptions(length_penalty=length_penalty)  # checks it
        if isinstance(sources, str) and isinstance(targets, str):
            return self.score([sources], [targets], length_penalty=length_penalty, first_index=first_index)[0]
        if isinstance(sources, str) or isinstance(targets, str):
            raise UserError("one text, but several of the other side: give one of each, or a list of each")
        pairs = texts_as_list(sources, "sources"), texts_as_list(targets, "targets")
        return score_pairs(self, *pairs, length_penalty, first_index)
