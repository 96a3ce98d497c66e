"""A language model, ready to use."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np

from heedful.config import shown
from heedful.errors import UserError, not_numbers
from heedful.inspection.attention.maps import AttentionMaps
from heedful.machine.torch_needed import needs_torch
from heedful.model_folder import LoadedModel
from heedful.tasks.given_texts import one_text, texts_as_list
from heedful.tasks.language_modeling.generation import Generation, GenerationOptions, Language
from heedful.tasks.language_modeling.seam import TextComputation, text_computation
from heedful.tasks.language_modeling.unknown_tokens import UnknownTokensWarning, unknown_tokens
from heedful.tasks.tracing import Traceable
from heedful.text.tokenizer import Tokenizer

# Whatever needs torch is imported where a model computes.
if TYPE_CHECKING:
    from heedful.inspection.trace.trace import Trace
    from heedful.models.decoder_only import DecoderOnly
    from heedful.models.xlnet import XLNet


@dataclass(frozen=True)
class TextScore:
    """How well a model predicts a text: nats per token, perplexity, bits per byte."""

    loss: float
    tokens: int
    bytes: int

    @property
    def perplexity(self) -> float:
        """The number of equally likely tokens that would be as hard to guess."""
        return math.exp(self.loss)

    @property
    def bits_per_byte(self) -> float:
        """Comparable between models with different vocabularies."""
        return self.loss * self.tokens / math.log(2) / self.bytes


class LanguageModel(Traceable):
    """A model that continues text."""

    tracing = "heedful.tasks.language_modeling.tracing:TRACING"

    def __init__(self, loaded: LoadedModel) -> None:
        self.model: DecoderOnly | XLNet = loaded.network
        self.config = loaded.config
        self.name = loaded.name
        self.tokenizer: Tokenizer = loaded.text_tokenizer
        self.language = Language(self.model, self.tokenizer)

    @cached_property
    def computation(self) -> TextComputation:
        """What computes with the model, apart from decoding; made when it is first needed."""
        return text_computation(self.model)

    @overload
    def generate(  # type: ignore[overload-overlap]
        self, prompts: str, options: GenerationOptions | None = None, *, first_index: int = 0
    ) -> list[str]: ...

    @overload
    def generate(
        self, prompts: Sequence[str], options: GenerationOptions | None = None, *, first_index: int = 0
    ) -> list[list[str]]: ...

    def generate(
        self, prompts: str | Sequence[str], options: GenerationOptions | None = None, *, first_index: int = 0
    ) -> list[str] | list[list[str]]:
        """For one prompt the list of `options.samples` texts that continue it, for several a list of such lists.

        `first_index` is the number of the first prompt in a longer series: samples are drawn by seed and number.
        """
        options = _generation_options(options)
        texts = texts_as_list(prompts, "prompts")
        pieces: dict[int, list[str]] = {number: [] for number in range(len(texts) * options.samples)}
        for number, piece in Generation(self.language, texts, options, first_index).run():
            pieces[number].append(piece)
        joined = ["".join(parts) for parts in pieces.values()]
        found = [joined[first : first + options.samples] for first in range(0, len(joined), options.samples)]
        return found[0] if isinstance(prompts, str) else found

    def stream(self, prompt: str, options: GenerationOptions | None = None) -> Iterator[str]:
        """The text that continues a prompt, piece by piece as it is generated."""
        options = _generation_options(options)
        if options.samples != 1:
            raise UserError(f"samples is {options.samples}, but one text is streamed at a time")
        for _, piece in Generation(self.language, [one_text(prompt, "prompt")], options).run():
            yield piece

    @needs_torch("looking into attention")
    def attention(self, text: str, target: str | None = None) -> AttentionMaps:
        """What the model attends to while it reads a text, and `target` after it, from the start of a document."""
        from heedful.tasks.language_modeling.attention import text_attention

        return text_attention(self, one_text(text) + one_text(target or "", "target"))

    @needs_torch("tracing a model")
    def trace(self, text: str, target: str | None = None) -> Trace:
        """Every tensor that the model computes while it reads a text, and `target` after it, by name."""
        from heedful.tasks.language_modeling.tracing import text_trace

        return text_trace(self, one_text(text) + one_text(target or "", "target"))

    def score(self, texts: str | Sequence[str]) -> TextScore:
        """How well the model predicts texts, including the end of each, in windows of its context without overlap.

        There is a warning if they have characters that it does not know: its score does not depend on which they are.
        """
        documents = texts_as_list(texts)
        end = self.model.special_tokens.end
        ids = np.array([end, *(token for text in documents for token in [*self.tokenizer.encode(text), end])])
        size = sum(len(text.encode("utf-8", "replace")) for text in documents)
        if not size:
            raise UserError("there is no text to score")
        total, tokens = self.computation.loss(ids), len(ids) - 1
        if not math.isfinite(total):
            raise not_numbers("scores")
        if unknown := unknown_tokens(self.tokenizer, ids, added=1 + len(documents)):
            # Of all texts together: the figures are, too.
            text = (
                f"has {unknown}: all of these are read as the same token, so that the figures look better than they are"
            )
            warnings.warn(UnknownTokensWarning(0, text), stacklevel=2)
        return TextScore(total / tokens, tokens, size)


def _generation_options(options: GenerationOptions | None) -> GenerationOptions:
    if not isinstance(options, GenerationOptions | None):
        raise UserError(f"options is {shown(options)}: expected heedful.GenerationOptions(...)")
    return options or GenerationOptions()
