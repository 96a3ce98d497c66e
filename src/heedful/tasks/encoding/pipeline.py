"""An encoder, ready to use: texts in, vectors out; and what all heads of an encoder share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import UserError, not_numbers
from heedful.inspection.attention.maps import AttentionMaps, Positions
from heedful.inspection.attention.predictions import Prediction, predictions
from heedful.inspection.attention.recording import Recording, check_length, one_look
from heedful.layers.kv_cache import FEWEST_ROWS, padded_length, with_enough_rows
from heedful.machine.devices import side_by_side
from heedful.model_folder import LoadedModel
from heedful.models.encoder_only import EncoderOnly
from heedful.settings.encoder_only import Cut, Pooling
from heedful.tasks.described import Described
from heedful.text.cleaning import clean_text
from heedful.text.framing import Framed, frame
from heedful.text.tokenizer import Tokenizer

DEFAULT_BATCH_SIZE = 64
# With fewer texts, torch's kernels would take other ways, and give other last bits.
FEWEST_TEXTS = 4

Text = str | tuple[str, str]
# From ids B T, lengths B and segments B T to a result for each row.
Compute = Callable[[Tensor, Tensor, Tensor | None], Tensor]


class ShortenedTextWarning(UserWarning):
    """The text of that index was longer than the model can take, and was read without its middle or its end."""

    def __init__(self, index: int, longest: int, cut: Cut = "middle") -> None:
        super().__init__(f"is longer than the {longest} tokens that the model takes: its {cut} was not read")
        self.index = index


class Encoder(Described):
    """An encoder-only model."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.model: EncoderOnly = loaded.network
        self.config = loaded.config
        self.name = loaded.name
        self.tokenizer: Tokenizer = loaded.text_tokenizer

    def embed(
        self,
        texts: Text | Iterable[Text],
        *,
        pooling: Pooling | None = None,
        normalize: bool | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> NDArray[np.float32]:
        """A vector D for a text, N D for several: its class token or the mean of its tokens, special ones included.

        Normalised vectors have length 1. What is not given is as the model's own settings (`vectors`) say.
        """
        own = self.model.config.vectors

        def compute(ids_BT: Tensor, lengths_B: Tensor, segments_BT: Tensor | None) -> Tensor:
            hidden_BTD = self.model.hidden(ids_BT, lengths_B, segments_BT, always_mask=True)
            return self.model.pooled(hidden_BTD, lengths_B, pooling or own.pooling)

        rows = self.run(self._frame_for_vectors(listed(texts)), compute, batch_size)
        vectors = np.stack(rows) if rows else np.empty((0, self.model.config.width), np.float32)
        if own.normalize if normalize is None else normalize:
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors[0] if is_one(texts) else vectors

    def attention(self, text: Text, target: str | None = None) -> AttentionMaps:
        """What the model attends to in a text, or in a pair of it and `target`."""
        return encoder_attention(self, *self.framed(text, target))

    def framed(self, text: Text, target: str | None) -> tuple[Framed, tuple[str, ...]]:
        """A text, or the pair of it and `target`, as the model reads it, and as people do; it must not be blank."""
        whole = text if target is None or isinstance(text, tuple) else (text, target)
        if not "".join(whole).strip():
            raise UserError("the text is blank: give one that the model can look at")
        texts = (whole,) if isinstance(whole, str) else whole
        return self.frame([whole])[0], tuple(clean_text(each) for each in texts)

    def frame(self, texts: Sequence[Text]) -> list[Framed]:
        """The texts as the model reads them, with a warning for each that is too long for it."""
        return self._frame(texts, self.model.max_length, "middle")

    def _frame_for_vectors(self, texts: list[Text]) -> list[Framed]:
        """The same for texts that become vectors, which may be read in a way of their own."""
        own = self.model.config.vectors
        if own.lowercase:
            texts = [text.lower() if isinstance(text, str) else (text[0].lower(), text[1].lower()) for text in texts]
        longest = self.model.max_length
        return self._frame(texts, min(own.max_length or longest, longest), own.cut)

    def _frame(self, texts: Sequence[Text], longest: int, cut: Cut) -> list[Framed]:
        parts = [(text,) if isinstance(text, str) else text for text in texts]
        flat = iter(self.tokenizer.encode_batch([clean_text(part) for text in parts for part in text]))
        special = self.model.special_tokens
        framed = [frame([next(flat) for _ in text], longest, special, cut_end=cut == "end") for text in parts]
        for index, each in enumerate(framed):
            if each.shortened:
                warnings.warn(ShortenedTextWarning(index, longest, cut), stacklevel=4)
        return framed

    def run(self, rows: Sequence[Framed], compute: Compute, batch_size: int) -> list[NDArray[np.float32]]:
        """What `compute` gives for each row, whatever the rows are batched with.

        Rows of one batch all have the same padded length, which depends on their own lengths alone.
        """
        if batch_size < 1:
            raise UserError(f"batch_size is {batch_size}, but must be at least 1")
        buckets: dict[int, list[int]] = {}
        for index, row in enumerate(rows):
            buckets.setdefault(self._padded_length(len(row.ids)), []).append(index)
        batches = [
            (length, indices[start : start + batch_size])
            for length, indices in buckets.items()
            for start in range(0, len(indices), batch_size)
        ]

        def work(batch: tuple[int, list[int]]) -> list[NDArray[np.float32]]:
            return self._compute([rows[index] for index in batch[1]], batch[0], compute)

        results: dict[int, NDArray[np.float32]] = {}
        for (_, chosen), found in zip(batches, side_by_side(work, batches, self.model.device), strict=True):
            results.update(zip(chosen, found, strict=True))
        return [results[index] for index in range(len(rows))]

    def logits(self, rows: Sequence[Framed], batch_size: int) -> list[NDArray[np.float32]]:
        """The head's answer to each row."""

        def compute(ids_BT: Tensor, lengths_B: Tensor, segments_BT: Tensor | None) -> Tensor:
            hidden_BTD = self.model.hidden(ids_BT, lengths_B, segments_BT, always_mask=True)
            if self.model.config.head == "classes":  # a row for each text, where there was one for each token
                lengths_B = F.pad(lengths_B, (0, max(0, FEWEST_ROWS - len(lengths_B))), value=1)
                hidden_BTD = with_enough_rows(hidden_BTD)
            return self.model.answers(hidden_BTD, lengths_B)

        return self.run(rows, compute, batch_size)

    def _padded_length(self, length: int) -> int:
        padded = padded_length(length)
        return padded if self.model.positions.extends else min(padded, self.model.max_length)

    def _compute(self, rows: list[Framed], length: int, compute: Compute) -> list[NDArray[np.float32]]:
        filled = rows + rows[:1] * (FEWEST_TEXTS - len(rows))
        ids = np.full((len(filled), length), self.model.special_tokens.pad)
        for target, row in zip(ids, filled, strict=True):
            target[: len(row.ids)] = row.ids
        lengths_B = torch.tensor([len(row.ids) for row in filled])
        first_B = torch.tensor([row.first_length for row in filled])
        segments_BT = (torch.arange(length) >= first_B[:, None]).long()
        device = self.model.device
        result = compute(torch.from_numpy(ids).to(device), lengths_B.to(device), segments_BT.to(device))
        found = result[: len(rows)].float().cpu().numpy()
        if not np.isfinite(found).all():
            raise not_numbers("answers")
        return list(found)


def is_one(texts: Text | Iterable[Text]) -> TypeGuard[Text]:
    """Whether it is one text, not several; a tuple is one text of two parts."""
    return isinstance(texts, str | tuple)


def listed(texts: Text | Iterable[Text]) -> list[Text]:
    """One text or several, as a list."""
    return [texts] if is_one(texts) else list(texts)


def probabilities(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """The softmax over the last axis."""
    scores = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True)


@dataclass(frozen=True)
class Predicted:
    """Which positions the head answers at, or None for the text as a whole; and what an answer is called."""

    places: Sequence[int] | None
    name: Callable[[int], str]

    def given(self, logits: Tensor) -> tuple[Prediction, ...]:
        """The answers that the head's logits, V or T V, stand for."""
        if self.places is None:
            return predictions(logits[None], [None], self.name, [None])
        places = list(self.places)
        return predictions(logits[places], [None] * len(places), self.name, [("source", each) for each in places])


def encoder_attention(
    encoder: Encoder, framed: Framed, texts: tuple[str, ...], answers: Predicted | None = None
) -> AttentionMaps:
    """The maps of all layers, and what the head answers, if there is something to be answered."""
    model, name = encoder.model, encoder.tokenizer.token_text
    check_length(len(framed.ids), None)
    ids_1T = torch.tensor([framed.ids], device=model.device)
    lengths_1 = torch.tensor([len(framed.ids)], device=model.device)
    segments_1T = (torch.arange(len(framed.ids), device=model.device) >= framed.first_length).long()[None]
    recording = Recording(model)
    with one_look():
        logits = recording.view(ids_1T, lengths_1, segments_1T)[0]
    maps = recording.maps("encoder", "self", "source", "source")
    sequences = {"source": Positions.in_a_row([name(token) for token in framed.ids])}
    outputs = () if answers is None else answers.given(logits)
    return AttentionMaps(encoder.name, encoder.config.family, sequences, maps, outputs, texts=texts)
