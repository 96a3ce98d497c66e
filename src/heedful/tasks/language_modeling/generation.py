"""Generating text, even beyond the model's context.

A prompt that fills the context is cut to its last tokens, half a context of them. When the generated text has
filled the context, it continues from its own last half.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heedful.config import require_whole, shown
from heedful.decoding.hypothesis import Hypothesis, Request
from heedful.decoding.options import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    MOST_TOKENS,
    DecodingOptions,
    SamplingOptions,
    is_number,
)
from heedful.decoding.progress import SentenceProgress
from heedful.errors import UserError
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.tasks.language_modeling.text_stream import TextStream
from heedful.tasks.language_modeling.unknown_tokens import UnknownPromptWarning, unknown_tokens
from heedful.tasks.remarks import TextWarning
from heedful.text.tokenizer import Tokenizer

# Whatever needs torch is imported where a model computes.
if TYPE_CHECKING:
    from heedful.models.decoder_only import DecoderOnly
    from heedful.models.xlnet import XLNet

# Random numbers are drawn by the number of the sample plus this times the number of its earlier requests.
ROUND = 2**32
MOST_AT_A_TIME = 64
# Tokens of a text: more than any book has. Texts per prompt: all of them are held until the last one ends.
MOST_GENERATED = 1_000_000
MOST_SAMPLES = 10_000


@dataclass(frozen=True)
class GenerationOptions:
    """How text is generated: at temperature 0 always the likeliest token, else tokens drawn at random.

    It ends after `max_tokens` tokens, at the end of the document, or before a stop string.
    """

    max_tokens: int = 200
    temperature: float = 0.8
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    samples: int = 1
    stop: tuple[str, ...] = ()
    repetition_penalty: float = 1.0
    no_repeat_ngram: int = 0

    def __post_init__(self) -> None:
        require_whole(self.max_tokens, "max_tokens", 1, MOST_GENERATED)
        require_whole(self.samples, "samples", 1, MOST_SAMPLES)
        if not is_number(self.temperature) or (
            self.temperature and not LOWEST_TEMPERATURE <= self.temperature <= HIGHEST_TEMPERATURE
        ):
            raise UserError(
                f"temperature is {shown(self.temperature)}, but must be 0, for the likeliest text, "
                f"or from {LOWEST_TEMPERATURE} to {HIGHEST_TEMPERATURE}"
            )
        if not isinstance(self.stop, tuple | list) or not all(isinstance(text, str) for text in self.stop):
            raise UserError(f"stop is {shown(self.stop)}, but must be texts: give them in a tuple")
        if "" in self.stop:
            raise UserError("stop holds an empty text, which would end before anything: leave it out")
        # These check the values; at temperature 0 they are not used, but must still be valid.
        SamplingOptions(self.temperature or 1.0, self.top_k, self.top_p, self.seed)
        assert self.search  # checks the rules against repetition

    @property
    def search(self) -> DecodingOptions:
        """How tokens are chosen; the seed and the number of tokens come with each request."""
        sampling = None
        if self.temperature > 0:
            sampling = SamplingOptions(self.temperature, self.top_k, self.top_p)
        return DecodingOptions(
            beam=1,
            min_length=0,
            sampling=sampling,
            repetition_penalty=self.repetition_penalty,
            no_repeat_ngram=self.no_repeat_ngram,
        )


class LongPromptWarning(TextWarning):
    """The prompt was longer than the model's context, and its beginning was left out."""

    noun = "prompt"


@dataclass(frozen=True)
class Language:
    """A language model and its vocabulary."""

    model: DecoderOnly | XLNet
    tokenizer: Tokenizer

    @property
    def context(self) -> int | None:
        """The most tokens that the model can see at once, if its positions set a limit."""
        return None if self.model.longest_target(0) is None else self.model.max_length

    def prompt_ids(self, prompt: str, index: int = 0) -> list[int]:
        """The ids of the prompt with that index, or only the last of them, with a warning, if it fills the context.

        There is a warning, too, if it has characters that the model does not know.
        """
        ids, context = self.tokenizer.encode(prompt), self.context
        if unknown := unknown_tokens(self.tokenizer, ids):
            text = f"has {unknown}: all of these are read as the same token"
            warnings.warn(UnknownPromptWarning(index, text), stacklevel=4)
        if context is None or len(ids) < context:
            return ids
        half = context // 2
        text = f"has {len(ids)} tokens, but the model's context holds {context}: only the last {half} are used"
        warnings.warn(LongPromptWarning(index, text), stacklevel=4)
        return ids[-half:]


class Sample:
    """One text in progress: its tokens so far, and the next request to decoding.

    `number` distinguishes it from the other samples with the same seed.
    """

    def __init__(self, language: Language, prompt: Sequence[int], options: GenerationOptions, number: int = 0) -> None:
        self.language, self.options, self.number = language, options, number
        self.stream = TextStream(language.tokenizer, options.stop, prompt)
        self.tokens = list(prompt)
        self.generated = self.generated_before = self.rounds = 0
        self.over = False

    def request(self, index: int) -> Request:
        """What is to be decoded next, until the text is over or the context is full."""
        context = self.language.context
        if context is not None and len(self.tokens) >= context:
            self.tokens = self.tokens[-(context // 2) :]
        # A model without a limit of its own would reserve room for all of them at once.
        most = min(self.options.max_tokens - self.generated, MOST_TOKENS)
        draw = (self.options.seed, self.number + self.rounds * ROUND)
        self.rounds += 1
        self.generated_before = self.generated
        return Request(index, self.tokens[:], max_length=most, draw=draw)

    def take(self, token: int) -> str:
        """Add a token; returns the text that is now certain, and sets `over` if it was the last."""
        self.tokens.append(token)
        self.generated += 1
        piece = self.stream.add(token)
        self.over = self.stream.stopped or self.generated >= self.options.max_tokens
        return piece

    def end(self, hypotheses: Sequence[Hypothesis]) -> None:
        """Note the end of a request: the end of the text, or only of the context."""
        # Without a new token, the next request would be the same again.
        stuck = self.generated == self.generated_before
        self.over = self.over or stuck or any(each.finished for each in hypotheses)


class Generation:
    """All samples of all prompts, generated side by side; `first` is the number of the first prompt in a series."""

    def __init__(self, language: Language, prompts: Sequence[str], options: GenerationOptions, first: int = 0) -> None:
        self.model, self.options = language.model, options
        self.pieces: list[tuple[int, str]] = []
        count = options.samples
        ids = [language.prompt_ids(prompt, index) for index, prompt in enumerate(prompts)]
        self.samples = [
            Sample(language, prompt, options, place * count + number)
            for place, prompt in enumerate(ids, first)
            for number in range(count)
        ]

    def run(self) -> Iterator[tuple[int, str]]:
        """Pieces of text, each with the number of its sample, as they are generated."""
        while any(not sample.over for sample in self.samples):
            yield from self._round()
        for index, sample in enumerate(self.samples):
            rest = sample.stream.finish()
            if rest:
                yield index, rest

    def _round(self) -> Iterator[tuple[int, str]]:
        """Continue all samples until the context is full."""
        from heedful.decoding.run import decode_stepwise

        requests = [sample.request(index) for index, sample in enumerate(self.samples) if not sample.over]
        steps = decode_stepwise(self.model, requests, self.options.search, MOST_AT_A_TIME, self._watch)
        while True:
            with one_thread(), flushed_denormals():  # but not while the caller's code runs
                results = next(steps, None)
            if results is None:
                return
            for result in results:
                self.samples[result.index].end(result.hypotheses)
            yield from self.pieces
            self.pieces.clear()

    def _watch(self, progress: SentenceProgress) -> bool:
        """Add a token to a sample, and return whether it continues."""
        sample = self.samples[progress.index]
        piece = sample.take(progress.last[0])
        if piece:
            self.pieces.append((progress.index, piece))
        return not sample.over
