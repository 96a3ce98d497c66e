"""A language model, ready to use."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import torch

from heedful.errors import UserError, not_numbers
from heedful.inspection.attention.maps import AttentionMaps, Positions
from heedful.inspection.attention.predictions import predictions
from heedful.inspection.attention.recording import Recording, check_length, one_look
from heedful.machine.devices import flushed_denormals
from heedful.model_folder import LoadedModel
from heedful.models.decoder_only import DecoderOnly
from heedful.models.xlnet import XLNet
from heedful.tasks.described import Described
from heedful.tasks.language_modeling.generation import Generation, GenerationOptions, Language
from heedful.tasks.language_modeling.task import text_loss
from heedful.text.tokenizer import Tokenizer

TOKENS_PER_BATCH = 8192


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
        """Comparable between models of different vocabularies."""
        return self.loss * self.tokens / math.log(2) / self.bytes


class LanguageModel(Described):
    """A model that continues text."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.model: DecoderOnly | XLNet = loaded.network
        self.config = loaded.config
        self.name = loaded.name
        self.tokenizer: Tokenizer = loaded.text_tokenizer
        self.language = Language(self.model, self.tokenizer)

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
        """For each prompt, or for one, the texts that continue it, as many as `options.samples`.

        `first_index` is the number of the first prompt in a longer series: texts are drawn by seed and number.
        """
        options = options or GenerationOptions()
        texts = [prompts] if isinstance(prompts, str) else list(prompts)
        pieces: dict[int, list[str]] = {number: [] for number in range(len(texts) * options.samples)}
        for number, piece in Generation(self.language, texts, options, first_index).run():
            pieces[number].append(piece)
        joined = ["".join(parts) for parts in pieces.values()]
        found = [joined[first : first + options.samples] for first in range(0, len(joined), options.samples)]
        return found[0] if isinstance(prompts, str) else found

    def stream(self, prompt: str, options: GenerationOptions | None = None) -> Iterator[str]:
        """The text that continues a prompt, piece by piece as it is generated."""
        options = options or GenerationOptions()
        if options.samples != 1:
            raise UserError(f"samples is {options.samples}, but one text is streamed at a time")
        for _, piece in Generation(self.language, [prompt], options).run():
            yield piece

    def attention(self, text: str, target: str | None = None) -> AttentionMaps:
        """What the model attends to while it reads a text, and `target` after it, from the start of a document."""
        return text_attention(self, text + (target or ""))

    def score(self, texts: str | Sequence[str]) -> TextScore:
        """How well the model predicts texts, the end of each included, in windows of its context without overlap."""
        documents = [texts] if isinstance(texts, str) else list(texts)
        end = self.model.special_tokens.end
        ids = np.array([end, *(token for text in documents for token in [*self.tokenizer.encode(text), end])])
        size = sum(len(text.encode("utf-8", "replace")) for text in documents)
        if not size:
            raise UserError("there is no text to score")
        with flushed_denormals():
            total, tokens = text_loss(self.model, ids, TOKENS_PER_BATCH)
        if not math.isfinite(total):
            raise not_numbers("scores")
        return TextScore(total / tokens, tokens, size)


def text_attention(pipeline: LanguageModel, text: str) -> AttentionMaps:
    """The maps of all layers; every token is predicted from those before it, and what follows the last is guessed.

    XLNet predicts by its query stream, whose positions stand at the places of the predicted tokens.
    """
    model, name = pipeline.model, pipeline.tokenizer.token_text
    tokens = pipeline.tokenizer.encode(text)
    if not tokens:
        raise UserError("the text is blank: give one that the model can look at")
    read = [model.special_tokens.end, *tokens]
    check_length(len(read), None if model.longest_target(0) is None else model.max_length)
    recording = Recording(model)
    with one_look():
        hidden_TD = recording.view.hidden(torch.tensor([read], device=model.device))[0]
        logits_TV = model.output(hidden_TD)
    places = [("target", place) for place in range(len(read))]
    outputs = predictions(logits_TV, [*tokens, None], name, places)
    sequences = {
        "source": Positions.in_a_row([name(token) for token in read]),
        "target": Positions.in_a_row([each.token for each in outputs], first=1),
    }
    maps = [
        *recording.maps("decoder", "self", "source", "source"),
        *recording.maps("content", "content", "source", "source"),
        *recording.maps("query", "query", "target", "source"),
    ]
    return AttentionMaps(pipeline.name, pipeline.config.family, sequences, maps, outputs, texts=(text.strip(),))
