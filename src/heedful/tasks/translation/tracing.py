"""Every tensor of a translation, and computing one pair at a time with a patched model."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.decoding.hypothesis import Request
from heedful.decoding.options import DecodingOptions
from heedful.decoding.run import decode
from heedful.errors import UserError
from heedful.inspection.attention.recording import check_length
from heedful.inspection.trace.trace import Trace, check_traceable, recorded
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.tasks.patched_network import PatchedNetwork, Tracing, patches_of
from heedful.tasks.tracing import traced_network
from heedful.tasks.translation.segmentation import Split
from heedful.tasks.translation.task import collate
from heedful.tasks.translation.with_torch import TorchPairs
from heedful.text.cleaning import clean_text

if TYPE_CHECKING:
    from heedful.tasks.translation.pipeline import Translator


def translation_trace(translator: Translator, text: str, target: str | None, beam: int, split: Split) -> Trace:
    """All tensors of a text and its translation, which is decoded if it is not given."""
    check_traceable(translator.config.family)
    (prepared,) = translator.prepare([text], split=split)
    if not prepared.sources:
        raise UserError("the text is blank: give one that the model can look at")
    if len(prepared.sources) > 1:
        hint = "" if split == "none" else " (or, in Python, split='none')"
        raise UserError(
            f"the text is translated in {len(prepared.sources)} pieces, and one can be followed at a time: give one of "
            f"them, as in {prepared.pieces[0].text!r}{hint}"
        )
    (source,) = prepared.sources
    check_length(len(source), translator.model.max_length)
    ids = _decoded(translator, source, beam) if target is None else translator.tokenizer.encode(clean_text(target))
    check_length(len(ids), translator.model.longest_target(0), "target")
    network, name = traced_network(translator), translator.tokenizer.token_text
    batch = collate([np.array(source)], [np.array(ids, np.int64)], network.special_tokens).to(network.device)
    points, tensors = recorded(network, patches_of(translator), lambda view: view(batch.source_BS, batch.target_BT))
    tokens = {"source": batch.source_BS, "target": batch.target_BT, "next": batch.labels_BT}
    labels = {key: [name(token) for token in rows[0].tolist()] for key, rows in tokens.items()}
    texts = (clean_text(text), translator.text_of(ids))
    return Trace(translator.name, translator.config.family, labels, points, tensors, texts)


def _decoded(translator: Translator, source: list[int], beam: int) -> list[int]:
    with one_thread(), flushed_denormals():
        (found,) = decode(translator.model, [Request(0, source)], DecodingOptions(beam=beam), 1)
    return found.hypotheses[0].tokens


def next_logits(view: Any, source: list[int], target_BT: Tensor) -> Tensor:
    """The logits B V of what follows each of several beginnings of a translation."""
    source_BS = torch.tensor([source], device=target_BT.device).expand(len(target_BT), -1)
    logits_BTV: Tensor = view(source_BS, target_BT)
    return logits_BTV[:, -1]


class WholePairs:
    """Computes pairs one at a time."""

    def __init__(self, network: PatchedNetwork) -> None:
        self.network = network

    @cached_property
    def _pairs(self) -> TorchPairs:
        model: Any = self.network
        return TorchPairs(model)

    def token_scores(self, pairs: list[tuple[list[int], list[int]]]) -> list[list[float]]:
        """The log-probabilities of the tokens of each target, and of its end."""
        return [self._pairs.token_scores([pair])[0] for pair in pairs]

    def cross_weights(self, sources: list[list[int]], targets: list[list[int]]) -> list[NDArray[np.float32]]:
        """Per pair, the mean weights T S of cross-attention."""
        return [self._cross_weights(*pair) for pair in zip(sources, targets, strict=True)]

    def _cross_weights(self, source: list[int], target: list[int]) -> NDArray[np.float32]:
        network = self.network.network
        batch = collate([np.array(source)], [np.array(target, np.int64)], network.special_tokens).to(network.device)
        run = lambda view: view.hidden(batch.source_BS, batch.target_BT)  # noqa: E731
        _, tensors = recorded(network, self.network.patches, run)
        weights = [each for name, each in tensors.items() if name.endswith("cross_attention.weights")]
        mean_TS: NDArray[np.float32] = torch.stack(weights).mean((0, 1, 2)).cpu().numpy()
        return mean_TS[: len(target), : len(source)]


TRACING = Tracing(WholePairs, ("target",), next_logits)
