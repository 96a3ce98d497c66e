"""Translating for one request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from heedful.decoding.hypothesis import Hypothesis
from heedful.decoding.options import DecodingOptions
from heedful.decoding.progress import SentenceProgress
from heedful.server.messages import ModelRequest
from heedful.server.worker.engine import MOST_SENTENCES, Engine
from heedful.server.worker.reply import Reply
from heedful.tasks.remarks import remarks
from heedful.tasks.translation.answers import Translation
from heedful.tasks.translation.pieces import TextInPieces, join_pieces
from heedful.tasks.translation.pipeline import Translator

# The options of a request that `DecodingOptions` has by the same names.
SEARCH = ("beam", "nbest", "repetition_penalty", "no_repeat_ngram")


@dataclass
class _Text:
    """A text under way: the indices of its pieces, the translations of some, and the beginnings of others."""

    prepared: TextInPieces
    indices: list[int]
    found: dict[int, Translation] = field(default_factory=dict)
    so_far: dict[int, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether all pieces are decoded."""
        return len(self.found) == len(self.indices)

    def partial(self) -> str:
        """The translation so far."""
        pairs = zip(self.prepared.pieces, self.indices, strict=True)
        return "".join(piece.before + self.so_far.get(index, "") for piece, index in pairs)


class TranslationWork:
    """The texts of one request, whose pieces are decoded along with those of others."""

    def __init__(self, request: ModelRequest, translator: Translator, engine: Engine, reply: Reply) -> None:
        self.translator, self.engine, self.reply = translator, engine, reply
        self.model, self.stream, self.alignment = request.model, request.stream, request.options["alignment"]
        self.options = DecodingOptions(**{name: value for name, value in request.options.items() if name in SEARCH})
        self.inputs, self.prefix, self.split = request.inputs, request.options["prefix"], request.options["split"]
        self.texts: list[_Text] = []
        self.text_of: dict[int, _Text] = {}

    @property
    def watched(self) -> bool:
        """Whether somebody is waiting for each of its tokens."""
        return self.stream

    @property
    def begun(self) -> int:
        """How many texts were split into pieces."""
        return len(self.texts)

    def start(self) -> Iterator[int]:
        """Hand the pieces to the engine, not all of a long text at once."""
        for place, line in enumerate(self.inputs):
            with remarks() as found:
                (prepared,) = self.translator.prepare([line], self.prefix, self.split)
            self.reply.remarks += [(place, remark) for _, remark in found]
            text = _Text(prepared, [next(self.engine.indices) for _ in prepared.pieces])
            self.texts.append(text)
            self.text_of.update(dict.fromkeys(text.indices, text))
            yield len(line)
            requests = prepared.requests(text.indices)
            for first in range(0, len(requests), MOST_SENTENCES):
                group = requests[first : first + MOST_SENTENCES]
                self.engine.add(self.model, self.options, group, self, self._watch if self.stream else None)
                yield 0
        self._finish_if_complete()  # in case it ends with blank texts, and not with a piece

    def done(self, index: int, hypotheses: list[Hypothesis]) -> None:
        """A piece is decoded; with the last one, the request is done."""
        text = self.text_of[index]
        source = text.prepared.sources[index - text.indices[0]]  # they are numbered one after another
        text.found[index] = self.translator.translated(source, hypotheses, self.alignment)
        self._show(text, index, hypotheses[0].tokens)
        self._finish_if_complete()

    def failed(self, error: Exception) -> None:
        """It has failed: report that."""
        self.cancel()
        self.reply.failed(error)

    def cancel(self) -> None:
        """Nobody is waiting for it any more."""
        for index in self.text_of:
            self.engine.cancel(index)

    def _watch(self, progress: SentenceProgress) -> bool:
        self._show(self.text_of[progress.index], progress.index, progress.tokens)
        return True

    def _show(self, text: _Text, index: int, tokens: list[int]) -> None:
        if not self.stream:
            return
        # A character that is not complete yet would show as a replacement character.
        so_far = self.translator.text_of(tokens).rstrip("\ufffd")
        if so_far != text.so_far.get(index):
            text.so_far[index] = so_far
            self.reply.partial(text.partial(), replaces=True)

    def _finish_if_complete(self) -> None:
        if len(self.texts) < len(self.inputs) or not all(each.complete for each in self.texts):
            return
        found = [
            join_pieces(text.prepared.pieces, [text.found[index] for index in text.indices], ranked=True)
            for text in self.texts
        ]
        self.reply.done([translation_answer(each, self.options.nbest) for each in found])


def translation_answer(translation: Translation, nbest: int) -> dict[str, Any]:
    """A translation as clients see it; the other hypotheses only where more than one was asked for."""
    answer = _hypothesis_answer(translation)
    answer["nbest"] = [_hypothesis_answer(each) for each in translation.nbest] if nbest > 1 else None
    return answer


def _hypothesis_answer(hypothesis: Translation) -> dict[str, Any]:
    tokens = zip(hypothesis.tokens, hypothesis.token_scores, strict=False)  # the end has a score, but no text
    return {
        "text": hypothesis.text,
        "score": hypothesis.score,
        "tokens": [{"text": text, "score": score} for text, score in tokens],
        "alignment": hypothesis.alignment,
        "pieces": [asdict(piece) for piece in hypothesis.pieces] or None,
    }
