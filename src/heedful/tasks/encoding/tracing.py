"""Every tensor that an encoder computes of a text, and computing one text at a time with a patched model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.inspection.attention.recording import check_length
from heedful.inspection.trace.trace import Trace, recorded
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.settings.encoder_only import Pooling
from heedful.tasks.encoding.seam import Rows
from heedful.tasks.patched_network import PatchedNetwork, Tracing, patches_of
from heedful.tasks.tracing import traced_network
from heedful.text.framing import Framed

if TYPE_CHECKING:
    from heedful.tasks.encoding.pipeline import Encoder


def encoder_trace(encoder: Encoder, framed: Framed, texts: tuple[str, ...]) -> Trace:
    """All tensors of a text or a pair, up to the head's answer."""
    check_length(len(framed.ids), None)
    network, name = traced_network(encoder), encoder.tokenizer.token_text
    inputs = _inputs(framed, network.device)
    points, tensors = recorded(network, patches_of(encoder), lambda view: view(*inputs))
    labels = {"text": [name(token) for token in framed.ids]}
    return Trace(encoder.name, encoder.config.family, labels, points, tensors, texts)


def _inputs(framed: Framed, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """The ids, the length and the segments of one text."""
    ids_1T = torch.tensor([framed.ids], device=device)
    lengths_1 = torch.tensor([len(framed.ids)], device=device)
    return ids_1T, lengths_1, (torch.arange(len(framed.ids), device=device) >= framed.first_length).long()[None]


class WholeEncoder:
    """Computes texts one at a time."""

    def __init__(self, network: PatchedNetwork) -> None:
        self.network: Any = network

    def pooled(self, rows: Rows, pooling: Pooling | None, batch_size: int) -> list[NDArray[np.float32]]:
        """Each text as one vector, D."""
        return [self._pooled(row, pooling) for row in rows]

    @torch.no_grad()
    def _pooled(self, row: Framed, pooling: Pooling | None) -> NDArray[np.float32]:
        ids_1T, lengths_1, segments_1T = _inputs(row, self.network.device)
        with one_thread(), flushed_denormals():
            hidden_1TD = self.network.hidden(ids_1T, lengths_1, segments_1T)
            found: NDArray[np.float32] = self.network.pooled(hidden_1TD, lengths_1, pooling)[0].cpu().numpy()
        return found

    def logits(self, rows: Rows, batch_size: int) -> list[NDArray[np.float32]]:
        """The head's answer to each text, V or T V."""
        with one_thread(), flushed_denormals(), torch.no_grad():
            return [self.network(*_inputs(row, self.network.device))[0].cpu().numpy() for row in rows]


TRACING = Tracing(WholeEncoder)
