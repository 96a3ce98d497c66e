"""Where the time of a decoding step goes, measured while it is taken: each part adds up the time of its calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from heedful.decoding import beam
from heedful.decoding.lane import Lane
from heedful.decoding.token_scores import TokenScores
from heedful.layers.int8_linear import Int8Linear
from heedful.layers.tree_cache import TreeLayerCache
from heedful.models.encoder_decoder import EncoderDecoder, EncoderDecoderState

PARTS = (
    "matrix products",
    "rounding rows and scaling results, int8",
    "attention",
    "cache: places, masks, storing, reordering",
    "norms, activations, embedding",
    "softmax and top-k",
)
REST, WHOLE = "Python, search and all else", "whole step"


class StepClock:
    """The seconds of every part, after so many first steps."""

    def __init__(self, skipped: int) -> None:
        self.skipped, self.taken = skipped, 0
        self.seconds: dict[str, float] = dict.fromkeys((*PARTS, WHOLE), 0.0)

    def timed(self, part: str, function: Callable[..., Any], within: str | None = None) -> Callable[..., Any]:
        """The function, whose time counts for that part, and not for the one that it is called within."""

        def call(*arguments: Any) -> Any:
            started = time.perf_counter()
            found = function(*arguments)
            took = time.perf_counter() - started
            self.seconds[part] += took
            if within:
                self.seconds[within] -= took
            return found

        return call

    def counted(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The function that takes a step; what was before it does not count if it is among the first."""

        def call(*arguments: Any) -> Any:
            if self.taken == self.skipped:
                self.seconds = dict.fromkeys(self.seconds, 0.0)
            self.taken += 1
            return step(*arguments)

        return call

    def milliseconds(self) -> dict[str, float]:
        """Of one step: its parts, what is between them, and the whole."""
        each = {part: 1e3 * seconds / (self.taken - self.skipped) for part, seconds in self.seconds.items()}
        whole = each.pop(WHOLE)
        return {**each, REST: whole - sum(each.values()), WHOLE: whole}


@contextmanager
def clocked(model: EncoderDecoder, skipped: int) -> Iterator[StepClock]:
    """Time the parts of every step that the model takes."""
    clock = StepClock(skipped)
    products, rounding, attention, cache, norms, scores = PARTS
    with ExitStack() as stack:

        def watch(part: str, owner: Any, *names: str, within: str | None = None) -> None:
            for name in names:
                timed = clock.timed(part, getattr(owner, name), within)
                stack.enter_context(mock.patch.object(owner, name, timed))

        for layer in decoder_linears(model):
            if isinstance(layer, Int8Linear):
                watch(rounding, layer, "forward")
                watch(products, layer, "_product_of_few", "_product_of_many", within=rounding)
            else:
                watch(products, layer, "forward")
        for block in model.decoder:
            watch(attention, block.attention, "attend")
            watch(attention, block.cross_attention, "attend")
            for residual in (block.attention_residual, block.cross_residual, block.feed_forward_residual):
                watch(norms, residual.norm, "forward")
            watch(norms, block.feed_forward.activation, "forward")
        watch(norms, model.target_embedding, "forward")
        watch(cache, EncoderDecoderState, "begin_step", "end_step", "reorder")
        watch(cache, TreeLayerCache, "spread", "append", "collect")
        watch(scores, TokenScores, "__init__", "log_probabilities")
        watch(scores, beam, "top_tokens")
        watch(WHOLE, Lane, "step")
        stack.enter_context(mock.patch.object(Lane, "step", clock.counted(Lane.step)))
        yield clock


def decoder_linears(model: EncoderDecoder) -> list[Any]:
    """The layers with the matrix products of a step; those of the source's keys have done theirs."""
    found: list[Any] = []
    for block in model.decoder:
        found += [block.attention.query_key_value_projection, block.attention.output_projection]
        found += [block.cross_attention.query_projection, block.cross_attention.output_projection]
        found += [block.feed_forward.inner_projection, block.feed_forward.output_projection]
    return [*found, model.output]
