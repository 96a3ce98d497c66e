"""An encoder, ready to use: texts in, vectors out; and what all heads of an encoder share."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UserError, not_numbers
from heedful.inspection.attention.maps import AttentionMaps
from heedful.machine.torch_needed import needs_torch
from heedful.model_folder import LoadedModel
from heedful.settings.encoder_only import Cut, Pooling
from heedful.tasks.computing import check_batch_size
from heedful.tasks.encoding.seam import EncoderComputation, encoder_computation
from heedful.tasks.given_texts import Text, is_one, one_text, one_text_or_pair, refuse_pairs, texts_or_pairs_as_list
from heedful.tasks.remarks import TextWarning
from heedful.tasks.tracing import Traceable
from heedful.text.cleaning import clean_text
from heedful.text.framing import Framed, frame
from heedful.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from heedful.inspection.trace.trace import Trace
    from heedful.models.encoder_only import EncoderOnly
    from heedful.tasks.encoding.attention import Predicted

DEFAULT_BATCH_SIZE = 64


class ShortenedTextWarning(TextWarning):
    """The text was longer than the model can take, and was read without its middle or its end."""


class Encoder(Traceable):
    """An encoder-only model."""

    tracing = "heedful.tasks.encoding.tracing:TRACING"

    def __init__(self, loaded: LoadedModel) -> None:
        self.model: EncoderOnly = loaded.network
        self.config = loaded.config
        self.name = loaded.name
        self.tokenizer: Tokenizer = loaded.text_tokenizer

    @cached_property
    def computation(self) -> EncoderComputation:
        """What computes with the model; made when it is first needed."""
        return encoder_computation(self.model)

    def embed(
        self,
        texts: Text | Iterable[Text],
        *,
        pooling: Pooling | None = None,
        normalize: bool | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> NDArray[np.float32]:
        """A vector D for a text, N D for several: its class token or the mean of its tokens, special ones included.

        Normalised vectors have length 1. What is not given is taken from the model's own settings (`vectors`).
        """
        check_batch_size(batch_size)
        own = self.model.config.vectors
        framed = self._frame_for_vectors(texts_or_pairs_as_list(texts))
        rows = checked(self.computation.pooled(framed, pooling or own.pooling, batch_size))
        vectors = np.stack(rows) if rows else np.empty((0, self.model.config.width), np.float32)
        if own.normalize if normalize is None else normalize:
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors[0] if is_one(texts) else vectors

    @needs_torch("looking into attention")
    def attention(self, text: Text, target: str | None = None) -> AttentionMaps:
        """What the model attends to in a text, or in a pair of it and `target`, and what its head answers."""
        from heedful.tasks.encoding.attention import encoder_attention

        return encoder_attention(self, *self.looked_into(text, target))

    @needs_torch("tracing a model")
    def trace(self, text: Text, target: str | None = None) -> Trace:
        """Every tensor that the model computes of a text, or of a pair of it and `target`, by name."""
        from heedful.tasks.encoding.tracing import encoder_trace

        framed, texts, _ = self.looked_into(text, target)
        return encoder_trace(self, framed, texts)

    def looked_into(self, text: Text, target: str | None) -> tuple[Framed, tuple[str, ...], Predicted | None]:
        """A text or a pair as the model reads it, the same for people, and where the head answers, if it does."""
        return *self.framed(text, target), None

    def framed(self, text: Text, target: str | None) -> tuple[Framed, tuple[str, ...]]:
        """A text, or the pair of it and `target`, as the model reads it and as people do; it must not be blank."""
        text = one_text_or_pair(text)
        whole = text if target is None or isinstance(text, tuple) else (text, one_text(target, "target"))
        if not "".join(whole).strip():
            raise UserError("the text is blank: give one that the model can look at")
        texts = (whole,) if isinstance(whole, str) else whole
        return self.frame([whole])[0], tuple(clean_text(each) for each in texts)

    def frame(self, texts: Sequence[Text]) -> list[Framed]:
        """The texts as the model reads them, with a warning for each that is too long for it."""
        return self._frame(texts, self.model.max_length, "middle")

    def _frame_for_vectors(self, texts: list[Text]) -> list[Framed]:
        """The same for texts that become vectors; the model's `vectors` settings may say to read them differently."""
        own = self.model.config.vectors
        if own.lowercase:
            texts = [text.lower() if isinstance(text, str) else (text[0].lower(), text[1].lower()) for text in texts]
        longest = self.model.max_length
        return self._frame(texts, min(own.max_length or longest, longest), own.cut)

    def _frame(self, texts: Sequence[Text], longest: int, cut: Cut) -> list[Framed]:
        if self.model.config.embedding.segments == 1:
            refuse_pairs(texts)
        parts = [(text,) if isinstance(text, str) else text for text in texts]
        flat = iter(self.tokenizer.encode_batch([clean_text(part) for text in parts for part in text]))
        special = self.model.special_tokens
        framed = [frame([next(flat) for _ in text], longest, special, cut_end=cut == "end") for text in parts]
        for index, each in enumerate(framed):
            if each.shortened:
                remark = f"is longer than the {longest} tokens that the model takes: its {cut} was not read"
                warnings.warn(ShortenedTextWarning(index, remark), stacklevel=4)
        return framed

    def logits(self, rows: Sequence[Framed], batch_size: int) -> list[NDArray[np.float32]]:
        """The head's answer to each row: V for classes, T V for others."""
        check_batch_size(batch_size)
        return checked(self.computation.logits(rows, batch_size))


def checked(rows: list[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    """What was computed, if all of it is finite."""
    if not all(np.isfinite(row).all() for row in rows):
        raise not_numbers("answers")
    return rows


def probabilities(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """The softmax over the last axis."""
    scores = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True)
