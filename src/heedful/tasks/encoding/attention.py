"""What an encoder attends to in a text, and what its head answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from heedful.inspection.attention.maps import AttentionMaps, Positions
from heedful.inspection.attention.predictions import Prediction, predictions
from heedful.inspection.attention.recording import Recording, check_length, one_look
from heedful.tasks.engines import torch_network
from heedful.text.framing import Framed

if TYPE_CHECKING:
    from heedful.tasks.encoding.pipeline import Encoder


@dataclass(frozen=True)
class Predicted:
    """The positions at which the head answers, or None for the whole text; and what an answer is called."""

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
    """The maps of all layers, and what the head answers, if it answers anything."""
    model, name = torch_network(encoder), encoder.tokenizer.token_text
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
