"""Generating text, also beyond the model's context.

A prompt that fills the context is cut to its last tokens, half a context of them; and when the text that was
generated has filled the context, it goes on from its own last half.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heedful.data.tokenizer import Tokenizer
from heedful.decoding.hypothesis import Request
from heedful.decoding.options import DecodingOptions, SamplingOptions
from heedful.decoding.scheduler import decode_stepwise
from heedful.errors import UserError
from heedful.machine import flushed_denormals, one_thread
from heedful.models.decoder_only import DecoderOnly
from heedful.models.xlnet import XLNet
from heedful.pipelines.text_stream import TextStream

# A request's number is that of its sample, plus this times the number of times that the context was full.
ROUND = 2**32
MOST_AT_A_TIME = 64


@dataclass(frozen=True)
class GenerationOptions:
    """How text is generated: at temperature 0 always the likeliest token, else drawn at random.

    It ends after `max_tokens` tokens, at the end of the document, or before a stop string.
    """

    max_tokens: int = 200
    temperature: float = 0.8
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    samples: int = 1
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("max_tokens", "samples"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}, but must be at least 1")
        if not 0 <= self.temperature < math.inf:
            raise UserError(f"temperature is {self.temperature}, but must be 0 or more")
        self.search(1)

    def search(self, tokens: int) -> DecodingOptions:
        """The search for so many tokens more."""
        sampling = None
        if self.temperature > 0:
            sampling = SamplingOptions(self.temperature, self.top_k, self.top_p, self.seed)
        return DecodingOptions(max_length=tokens, sampling=sampling)


class LongPromptWarning(UserWarning):
    """A prompt was longer than the model's context, and its beginning was left out."""


class _Sample:
    """One text under way."""

    def __init__(self, tokens: list[int], stream: TextStream) -> None:
        self.tokens, self.stream = tokens, stream
        self.generated = 0
        self.over = False


class Generation:
    """All samples of all prompts, generated side by side."""

    def __init__(
        self, model: DecoderOnly | XLNet, tokenizer: Tokenizer, prompts: Sequence[str], options: GenerationOptions
    ) -> None:
        self.model, self.options = model, options
        self.context = None if model.longest_target(0) is None else model.max_length
        self.pieces: list[tuple[int, str]] = []
        self.samples: list[_Sample] = []
        for prompt in prompts:
            tokens = self._fitted(tokenizer.encode(prompt))
            streams = [TextStream(tokenizer, options.stop) for _ in range(options.samples)]
            self.samples += [_Sample(list(tokens), stream) for stream in streams]

    def _fitted(self, tokens: list[int]) -> list[int]:
        if self.context is None or len(tokens) < self.context:
            return tokens
        half = self.context // 2
        warnings.warn(
            LongPromptWarning(
                f"the prompt has {len(tokens)} tokens, but the model's context {self.context}: "
                f"only the last {half} are used"
            ),
            stacklevel=4,
        )
        return tokens[-half:]

    def run(self) -> Iterator[tuple[int, str]]:
        """Pieces of text, each with the number of its sample, as they are generated."""
        number = 0
        while any(not sample.over for sample in self.samples):
            yield from self._round(number)
            number += 1
        for index, sample in enumerate(self.samples):
            rest = sample.stream.finish()
            if rest:
                yield index, rest

    def _round(self, number: int) -> Iterator[tuple[int, str]]:
        """Go on with all samples, until the context is full."""
        running = {index: sample for index, sample in enumerate(self.samples) if not sample.over}
        most = max(self.options.max_tokens - sample.generated for sample in running.values())
        requests = []
        for index, sample in running.items():
            if self.context is not None and len(sample.tokens) >= self.context:
                sample.tokens = sample.tokens[-(self.context // 2) :]
            requests.append(Request(index + number * ROUND, sample.tokens[:]))
        with one_thread(), flushed_denormals():
            steps = decode_stepwise(self.model, requests, self.options.search(most), MOST_AT_A_TIME, self._watch)
            for results in steps:
                for result in results:
                    if any(each.finished for each in result.hypotheses):
                        self.samples[result.index % ROUND].over = True
                yield from self.pieces
                self.pieces.clear()

    def _watch(self, index: int, row: int, token: int) -> bool:
        """Take in a token of a sample, and say whether it goes on."""
        sample = self.samples[index % ROUND]
        sample.tokens.append(token)
        sample.generated += 1
        piece = sample.stream.add(token)
        if piece:
            self.pieces.append((index % ROUND, piece))
        sample.over = sample.stream.stopped or sample.generated >= self.options.max_tokens
        return not sample.over
