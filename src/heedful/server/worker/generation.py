"""Generating text for one request."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from heedful.decoding.hypothesis import Hypothesis
from heedful.decoding.progress import SentenceProgress
from heedful.server.messages import ModelRequest
from heedful.server.worker.engine import Engine
from heedful.server.worker.reply import Reply
from heedful.tasks.language_modeling.generation import GenerationOptions, Sample
from heedful.tasks.language_modeling.pipeline import LanguageModel
from heedful.tasks.remarks import remarks
from heedful.text.tokenizer import SPECIAL_TOKENS, Tokenizer

END_NAME = SPECIAL_TOKENS[-1]


class GenerationWork:
    """The samples of one request, decoded along with those of others."""

    # By this work itself at least, which looks for stop strings.
    watched = True

    def __init__(self, request: ModelRequest, pipeline: LanguageModel, engine: Engine, reply: Reply) -> None:
        self.model, self.engine, self.reply, self.stream = request.model, engine, reply, request.stream
        self.tokenizer = pipeline.tokenizer
        settings = dict(request.options)
        self.runners_up: int = settings.pop("runners_up")
        self.options = GenerationOptions(**settings)
        self.language, self.prompts, self.first = pipeline.language, request.inputs, request.first
        self.samples: list[Sample] = []
        self.prompt_tokens: list[int] = []
        self.tokens: list[list[dict[str, Any]]] = []
        self.number_of: dict[int, int] = {}
        self.left = len(self.prompts) * self.options.samples

    @property
    def begun(self) -> int:
        """How many samples were begun."""
        return len(self.samples)

    def start(self) -> Iterator[int]:
        """Hand the prompts to the engine, one at a time."""
        for place, prompt in enumerate(self.prompts, self.first):
            with remarks() as found:
                ids = self.language.prompt_ids(prompt)
            self.reply.remarks += [(place - self.first, remark) for _, remark in found]
            for number in range(place * self.options.samples, (place + 1) * self.options.samples):
                sample = Sample(self.language, ids, self.options, number)
                self.samples.append(sample)
                self.prompt_tokens.append(len(sample.tokens))
                self.tokens.append([])
                self._go_on(len(self.samples) - 1)
                yield len(prompt)

    def _go_on(self, number: int) -> None:
        index = next(self.engine.indices)
        self.number_of[index] = number
        self.engine.add(self.model, self.options.search, [self.samples[number].request(index)], self, self._watch)

    def _watch(self, progress: SentenceProgress) -> bool:
        """Take in a token of a sample, and say whether it goes on."""
        number = self.number_of[progress.index]
        sample = self.samples[number]
        token, score = progress.last
        piece = sample.take(token)
        self._tell(number, piece, score, token, progress)
        if not sample.over:
            return True
        self.engine.forget(progress.index)
        self._end(number, progress.index)
        return False

    def done(self, index: int, hypotheses: list[Hypothesis]) -> None:
        """A sample has come to its end, or to the end of the context."""
        number = self.number_of[index]
        sample = self.samples[number]
        sample.end(hypotheses)
        if sample.over:
            self._end(number, index)
        else:
            del self.number_of[index]
            self._go_on(number)

    def failed(self, error: Exception) -> None:
        """It has failed: report that."""
        self.cancel()
        self.reply.failed(error)

    def cancel(self) -> None:
        """Nobody is waiting for it any more."""
        for index in self.number_of:
            self.engine.cancel(index)

    def _tell(self, number: int, piece: str, score: float, token: int, progress: SentenceProgress) -> None:
        answer = {"text": piece, "probability": math.exp(score), "runners_up": []}
        if self.runners_up:
            others = [each for each in progress.likeliest(self.runners_up + 1) if each[0] != token]
            answer["runners_up"] = [
                {"text": token_name(self.tokenizer, other), "probability": math.exp(its_score)}
                for other, its_score in others[: self.runners_up]
            ]
        self._add(number, answer)

    def _add(self, number: int, answer: dict[str, Any]) -> None:
        if self.stream:
            self.reply.partial({"sample": number, **answer})
        self.tokens[number].append(answer)

    def _end(self, number: int, index: int) -> None:
        del self.number_of[index]
        rest = self.samples[number].stream.finish()
        if rest:
            self._add(number, {"text": rest, "probability": None, "runners_up": []})
        self.left -= 1
        if not self.left:
            self.reply.done([self._answer(each) for each in range(len(self.samples))])

    def _answer(self, number: int) -> dict[str, Any]:
        sample = self.samples[number]
        return {
            "text": "".join(token["text"] for token in self.tokens[number]),
            "tokens": self.tokens[number],
            "full": sample.generated >= self.options.max_tokens and not sample.stream.stopped,
            "generated": sample.generated,
            "prompt_tokens": self.prompt_tokens[number],
        }


def token_name(tokenizer: Tokenizer, token: int) -> str:
    """What a token stands for; the end has a name of its own."""
    return END_NAME if token == tokenizer.special_tokens.end else tokenizer.token_text(token)
