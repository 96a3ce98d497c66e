"""What a language model attends to while it reads a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from heedful.errors import UserError
from heedful.inspection.attention.maps import AttentionMaps, Positions
from heedful.inspection.attention.predictions import predictions
from heedful.inspection.attention.recording import Recording, check_length, one_look
from heedful.tasks.engines import torch_network

if TYPE_CHECKING:
    from heedful.tasks.language_modeling.pipeline import LanguageModel


def text_attention(pipeline: LanguageModel, text: str) -> AttentionMaps:
    """The maps of all layers; every token is predicted from those before it, and so is the one after the last.

    XLNet predicts with its query stream, whose positions are those of the predicted tokens.
    """
    model, name = torch_network(pipeline), pipeline.tokenizer.token_text
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
