"""A view of a model with a tap at every point: forward hooks on its own modules, and attention written out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from heedful.inspection.trace.attend import Place, TappedAttend, TappedRelativeAttend
from heedful.inspection.trace.embedding import tapped_embedding
from heedful.inspection.trace.point import TEXT, Point, Tap, sequence_of
from heedful.inspection.trace.views import Model, view_of
from heedful.layers.blocks import PostNorm, PreNorm
from heedful.layers.embeddings import TokenEmbedding
from heedful.layers.feed_forward import FeedForward
from heedful.layers.multi_head_attention import MultiHeadAttention, SelfAttention, split_heads
from heedful.layers.positions import PositionScheme
from heedful.layers.relative_attention import STREAMS, RelativeAttention, RelativeBlock

# What a model has around its blocks, by the names of its modules: the point at a module's input, if any, the one at its
# output, if any, and the letters of both.
AROUND: dict[str, tuple[str | None, str | None, str, str]] = {
    "encoder_norm": (None, "encoder_norm.output", "", "BTD"),
    "decoder_norm": (None, "decoder_norm.output", "", "BTD"),
    "norm": (None, "norm.output", "", "BTD"),
    "pooler": ("pooled", "pooler.output", "BD", "BD"),
    "transform.dense": (None, "transform.dense", "", "BTD"),
    "transform.norm": ("transform.activated", "transform.output", "BTD", "BTD"),
    "patches.projection": ("patches.windows", None, "BPC", ""),
    "patches": (None, "patches.output", "", "BPD"),
    "positions": (None, "positions.output", "", "PD"),
    "neighbourhood": ("placed", "neighbourhood.output", "BTD", "BTD"),
    "class_token": ("placed", "class_token.output", "BPD", "BTD"),
}


class TappedPositions:
    """A position scheme as an attention layer uses it, with a tap on the positions themselves."""

    def __init__(self, scheme: PositionScheme, tap: Callable[[Tensor], Tensor]) -> None:
        self.scheme, self.tap = scheme, tap

    def rotate(self, x_BHTK: Tensor, positions: Tensor) -> Tensor:
        """Queries or keys, rotated."""
        return self.scheme.rotate(x_BHTK, self.tap(positions))

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor | None:
        """What is added to the scores."""
        return self.scheme.bias(self.tap(query_positions), self.tap(key_positions))


class _Stream(threading.local):
    """Which of XLNet's streams the calling thread computes: both go through the same modules."""

    name: str = ""


class Tapping:
    """Puts taps into a view, and collects the names of all points that they can give."""

    def __init__(self, view: nn.Module, tap: Tap) -> None:
        self.view, self.tap = view, tap
        self.names: list[str] = []
        self._stream = _Stream()
        self._has_streams = any(isinstance(each, RelativeBlock) for each in view.modules())
        # The sequence at whose positions the head answers.
        self._answering = "target" if hasattr(view, "target_embedding") else "next" if self._has_streams else TEXT

    def install(self) -> None:
        """Tap every module that computes something with a name."""
        for name, module in self.view.named_modules():
            if isinstance(module, TokenEmbedding):
                self._embedding(name, module)
            elif isinstance(module, SelfAttention | MultiHeadAttention):
                self._attention(name, module)
            elif isinstance(module, RelativeBlock):
                self._relative_block(name, module)
            elif isinstance(module, PostNorm | PreNorm):
                self._residual(name, module)
            elif isinstance(module, FeedForward):
                self._feed_forward(name, module)
            elif name in AROUND and not isinstance(module, PositionScheme):
                self._around(name, module)
            elif name == "embedding" and isinstance(module, nn.Embedding):  # XLNet's
                self._after(module, name, "vectors", "BTD")
        self._head()

    def _place(self, prefix: str, columns: str | None = None) -> Place:
        """A tap for the points of a part; for XLNet, their names have the stream after the block's number."""
        rows = sequence_of(prefix) if prefix else self._answering

        def tap(last: str, letters: str, tensor: Tensor) -> Tensor:
            name, own_rows, stream = joined_name(prefix, last), rows, self._stream.name
            if stream:
                block, number, rest = name.split(".", 2)
                name = f"{block}.{number}.{stream}.{rest}"
                own_rows = "next" if stream == "query" else rows
            if len(letters) > tensor.dim():  # the answer to a whole text has no positions
                letters = letters.replace("T", "", 1)
            elif len(letters) < tensor.dim():  # positions that differ between sentences
                letters = f"B{letters}"
            return self.tap(Point(name, letters, own_rows, columns or rows), tensor)

        return tap

    def _know(self, prefix: str, *names: str) -> None:
        if self._has_streams and prefix.startswith("blocks."):
            block, number, rest = prefix.split(".", 2)
            for stream in STREAMS:
                self.names += [f"{block}.{number}.{stream}.{rest}.{name}" for name in names]
        else:
            self.names += [joined_name(prefix, name) for name in names]

    def _after(self, module: nn.Module, prefix: str, last: str, letters: str) -> None:
        """Tap a module's output."""
        tap = self._place(prefix)
        self._know(prefix, last)
        module.register_forward_hook(lambda _, args, output: tap(last, letters, output))

    def _before(self, module: nn.Module, prefix: str, last: str, letters: str) -> None:
        """Tap a module's input."""
        tap = self._place(prefix)
        self._know(prefix, last)
        module.register_forward_pre_hook(lambda _, args: (tap(last, letters, args[0]), *args[1:]))

    def _embedding(self, name: str, embedding: TokenEmbedding) -> None:
        there = {
            "scaled": embedding.scale != 1.0,
            "positions": embedding.positions.uses("add"),
            "segments": embedding.segments is not None,
            "sum": not isinstance(embedding.norm, nn.Identity),
        }
        self._know(name, "ids", "vectors", *(each for each, is_there in there.items() if is_there), "output")
        own = cast(Any, embedding)  # its method is replaced only in the view
        own.forward = partial(tapped_embedding, embedding, self._place(name))

    def _attention(self, name: str, layer: SelfAttention | MultiHeadAttention) -> None:
        shared = layer.num_heads // layer.num_key_value_heads
        turned = biased = False
        if isinstance(layer, SelfAttention):
            tap, scheme = self._place(name), layer._positions[0]
            parts = [("queries", "BHTK"), ("keys", "BGSK"), ("values", "BGSV")]
            self._projection(layer.query_key_value_projection, tap, layer.parts, parts)
            turned, biased = scheme.uses("rotate"), scheme.uses("bias")
            if turned or biased:
                self._know(name, "positions")
                tapped = TappedPositions(scheme, lambda positions: tap("positions", "T", positions))
                layer._positions = [cast(PositionScheme, tapped)]
        else:
            tap = self._place(name, "source")
            widths = ((layer.num_heads, layer.key_width),)
            self._projection(layer.query_projection, tap, widths, [("queries", "BHTK")])
            self._projection(layer.key_value_projection, tap, layer.parts, [("keys", "BGSK"), ("values", "BGSV")])
        layer.attend = TappedAttend(tap, shared, turned)
        more = ("turned_queries", "turned_keys") * turned + ("bias", "biased") * biased
        more += ("scaled",) * (layer.scoring_vector is None)
        self._know(name, "queries", "keys", "values", *more, "scores", "mask", "masked", "weights", "mixed")
        self._joined(name, layer.output_projection)

    def _projection(
        self, module: nn.Module, tap: Place, widths: tuple[tuple[int, int], ...], parts: list[tuple[str, str]]
    ) -> None:
        """Tap the parts of a packed projection, head by head."""

        def tapped(_: nn.Module, args: Any, packed_BTX: Tensor) -> Tensor:
            heads = split_heads(packed_BTX, *widths)
            found = [tap(name, letters, each) for (name, letters), each in zip(parts, heads, strict=True)]
            return torch.cat([each.transpose(1, 2).flatten(2) for each in found], dim=-1)

        module.register_forward_hook(tapped)

    def _relative_block(self, name: str, block: RelativeBlock) -> None:
        layer: RelativeAttention = block.attention
        tap = self._place(f"{name}.attention")
        for stream in STREAMS:
            layer.attend[stream] = cast(Any, TappedRelativeAttend(tap))
        steps = ("queries", "keys", "values", "distances", "content_scores", "distance_scores", "segment_scores")
        self._know(f"{name}.attention", *steps, "scores", "scaled", "mask", "masked", "weights", "mixed")
        self._joined(f"{name}.attention", layer.output_projection)

        def enter(_: nn.Module, args: Any) -> None:
            self._stream.name = args[3].stream

        def leave(_: nn.Module, args: Any, output: Tensor) -> None:
            self._stream.name = ""

        block.register_forward_pre_hook(enter)
        block.register_forward_hook(leave, always_call=True)

    def _joined(self, name: str, projection: nn.Module) -> None:
        self._before(projection, name, "joined", "BTX")
        self._after(projection, name, "output", "BTD")

    def _residual(self, name: str, residual: PostNorm | PreNorm) -> None:
        if isinstance(residual, PostNorm):
            self._before(residual.norm, name, "sum", "BTD")
        else:
            self._after(residual.norm, name, "normed", "BTD")
        self._after(residual, name, "output", "BTD")

    def _feed_forward(self, name: str, network: FeedForward) -> None:
        self._after(network.inner_projection, name, "inner", "BTF")
        self._after(network.activation, name, "activated", "BTF")
        self._after(network.output_projection, name, "output", "BTD")

    def _around(self, name: str, module: nn.Module) -> None:
        before, after, before_letters, after_letters = AROUND[name]
        twice = before == "placed" and name == "class_token" and getattr(self.view, "neighbourhood", None) is not None
        if before and not twice:
            self._before(module, *_split(before), before_letters)
        if after and not isinstance(module, nn.Identity):
            self._after(module, *_split(after), after_letters)

    def _head(self) -> None:
        output = cast(nn.Module, self.view.output)
        if hasattr(self.view, "class_token"):
            self._before(output, "", "pooled", "BD")
        if not isinstance(output, nn.Identity):
            self._after(output, "", "logits", "BTV")


def joined_name(prefix: str, last: str) -> str:
    """The name of a point; those of the whole model have no prefix."""
    return f"{prefix}.{last}" if prefix else last


def _split(name: str) -> tuple[str, str]:
    """The part that a point belongs to, and its own name."""
    prefix, _, last = name.rpartition(".")
    return prefix, last


def tapped_view(model: Model, tap: Tap) -> tuple[Model, list[str]]:
    """A second view of the same model, on the same parameters, with a tap at every point; and all points' names.

    The model itself does not change, so that others can go on using it.
    """
    view = view_of(model)
    tapping = Tapping(view, tap)
    tapping.install()
    return view, tapping.names


def point_names(model: nn.Module) -> set[str]:
    """The names of all points of a model."""
    return set(tapped_view(model, lambda _, tensor: tensor)[1])
