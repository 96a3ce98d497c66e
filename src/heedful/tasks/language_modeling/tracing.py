"""Every tensor that a model computes of a text, and computing one window at a time with a patched model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import UserError
from heedful.inspection.attention.recording import check_length
from heedful.inspection.trace.trace import Trace, recorded
from heedful.machine.devices import flushed_denormals
from heedful.tasks.language_modeling.task import text_loss
from heedful.tasks.patched_network import PatchedNetwork, Tracing, patches_of
from heedful.tasks.tracing import traced_network

if TYPE_CHECKING:
    from heedful.tasks.language_modeling.pipeline import LanguageModel


def text_trace(pipeline: LanguageModel, text: str) -> Trace:
    """All tensors of a text from the start of a document; every token is predicted from those before it."""
    tokens = pipeline.tokenizer.encode(text)
    if not tokens:
        raise UserError("the text is blank: give one that the model can look at")
    network, name = traced_network(pipeline), pipeline.tokenizer.token_text
    read = [network.special_tokens.end, *tokens]
    check_length(len(read), None if network.longest_target(0) is None else network.max_length)
    ids_1T = torch.tensor([read], device=network.device)
    points, tensors = recorded(network, patches_of(pipeline), lambda view: view.output(view.hidden(ids_1T)))
    following = [*tokens, int(tensors["logits"][0, -1].argmax())]
    labels = {key: [name(token) for token in ids] for key, ids in {"text": read, "next": following}.items()}
    return Trace(pipeline.name, pipeline.config.family, labels, points, tensors, (text.strip(),))


def next_logits(view: Any, prompt: list[int], ids_BT: Tensor) -> Tensor:
    """The logits B V of what follows a prompt and each of several beginnings of its continuation."""
    prompt_BS = torch.tensor([prompt], dtype=torch.long, device=ids_BT.device).expand(len(ids_BT), -1)
    logits_BTV: Tensor = view.output(view.hidden(torch.cat([prompt_BS, ids_BT], dim=1)))
    return logits_BTV[:, -1]


class WholeText:
    """Computes the windows of a text one at a time."""

    def __init__(self, network: PatchedNetwork) -> None:
        self.network = network

    def loss(self, ids: NDArray[np.integer]) -> float:
        """The summed loss of all ids but the first."""
        model: Any = self.network
        with flushed_denormals():
            return text_loss(model, ids, 1)[0]


TRACING = Tracing(WholeText, ("text", "next"), next_logits)
