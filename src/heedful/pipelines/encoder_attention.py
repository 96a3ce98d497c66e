"""What an encoder attends to in a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from heedful.data.framing import Framed
from heedful.inspection.attention_map import Positions
from heedful.inspection.attention_maps import AttentionMaps
from heedful.inspection.predictions import predictions
from heedful.inspection.recording import Recording, check_length, one_look

if TYPE_CHECKING:
    from heedful.pipelines.encoder import Encoder


@dataclass(frozen=True)
class Answers:
    """Which positions the head answers at, or None for the text as a whole; and what an answer is called."""

    places: Sequence[int] | None
    name: Callable[[int], str]


def encoder_attention(encoder: Encoder, framed: Framed, answers: Answers | None = None) -> AttentionMaps:
    """The maps of all layers, and what the head answers, if there is something to be answered."""
    model, name = encoder.model, encoder.tokenizer.token_text
    check_length(len(framed.ids), None)
    ids_1T = torch.tensor([framed.ids], device=model.device)
    lengths_1 = torch.tensor([len(framed.ids)], device=model.device)
    segments_1T = (torch.arange(len(framed.ids), device=model.device) >= framed.first_length).long()[None]
    recording = Recording(model)
    with one_look():
        logits = recording.view(ids_1T, lengths_1, segments_1T)[0]
    maps = recording.maps("encoder", "blocks.{}.attention", "source", "source")
    sequences = {"source": Positions.in_a_row([name(token) for token in framed.ids])}
    outputs = ()
    if answers is not None and answers.places is None:
        outputs = predictions(logits[None], [None], answers.name, [None])
    elif answers is not None and answers.places is not None:
        places = list(answers.places)
        outputs = predictions(logits[places], [None] * len(places), answers.name, [("source", each) for each in places])
    return AttentionMaps(encoder.name, encoder.config.family, sequences, maps, outputs)
