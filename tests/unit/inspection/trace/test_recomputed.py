"""Each tensor of a trace is what the paper's formulas make of those before it, in every family."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.inspection.trace.trace import Trace
from heedful.layers.blocks import PreNorm
from heedful.layers.positions.relative_buckets import relative_buckets
from heedful.layers.relative_attention import RelativeAttention

# Which embedding has the position scheme of a stack.
BIASED = {"encoder": "source_embedding", "decoder": "target_embedding", "blocks": "embedding"}
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=2e-5)


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    product = torch.einsum("...i,oi->...o", x, layer.weight)
    return product if layer.bias is None else product + layer.bias


def normalised(norm: nn.Module, x: Tensor) -> Tensor:
    middle = x - x.mean(-1, keepdim=True)
    return middle / (middle.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight + norm.bias


def by_head(x_BTX: Tensor, heads: int) -> Tensor:
    return torch.stack(x_BTX.chunk(heads, dim=-1), dim=1)


class Recomputed:
    """Follows a stream through a model's parameters, and compares with the trace at every step."""

    def __init__(self, model: nn.Module, trace: Trace) -> None:
        self.model, self.trace = model, trace
        self.seen: set[str] = set()

    def at(self, name: str) -> Tensor:
        self.seen.add(name)
        return self.trace[name]

    def check(self, name: str, expected: Tensor) -> Tensor:
        close(self.at(name), expected)
        return self.trace[name]

    def embedding(self, name: str) -> Tensor:
        layer = self.model.get_submodule(name)
        x = self.check(f"{name}.vectors", layer.table.weight[self.at(f"{name}.ids")])
        if layer.scale != 1:
            x = self.check(f"{name}.scaled", x * math.sqrt(x.shape[-1]))
        if f"{name}.positions" in self.trace:
            table = layer.positions.table[: x.shape[1]]
            x = x + self.check(f"{name}.positions", table)
        if f"{name}.segments" in self.trace:
            x = x + self.at(f"{name}.segments")
        if f"{name}.sum" in self.trace:
            x = normalised(layer.norm, self.check(f"{name}.sum", x))
        return self.check(f"{name}.output", x)

    def heads(self, name: str, x: Tensor, memory: Tensor) -> list[Tensor]:
        layer = self.model.get_submodule(name)
        H, G, K, V = layer.num_heads, layer.num_key_value_heads, layer.key_width, layer.value_width
        if hasattr(layer, "query_key_value_projection"):
            packed = linear(layer.query_key_value_projection, x)
            parts = packed.split([H * K, G * K, G * V], dim=-1)
        else:
            parts = (
                linear(layer.query_projection, x),
                *linear(layer.key_value_projection, memory).split([G * K, G * V], -1),
            )
        names = ("queries", "keys", "values")
        found = [
            self.check(f"{name}.{part}", by_head(each, n))
            for part, each, n in zip(names, parts, (H, G, G), strict=True)
        ]
        if f"{name}.turned_queries" in self.trace:
            angles = self.at(f"{name}.positions")[:, None] * 10000.0 ** (-torch.arange(0, K, 2) / K)
            for place, part in enumerate(("turned_queries", "turned_keys")):
                pairs = torch.view_as_complex(torch.stack(found[place].float().chunk(2, -1), dim=-1).contiguous())
                turned = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles))
                found[place] = self.check(f"{name}.{part}", torch.cat(turned.unbind(-1), dim=-1))
        return [found[0], *(each.repeat_interleave(H // G, dim=1) for each in found[1:])]

    def attention(self, name: str, x: Tensor, memory: Tensor, hides_future: bool) -> Tensor:
        layer = self.model.get_submodule(name)
        query, key, value = self.heads(name, x, memory)
        if layer.scoring_vector is None:
            scores = self.check(f"{name}.scores", torch.einsum("bhtk,bhsk->bhts", query, key))
            scores = self.check(f"{name}.scaled", scores / math.sqrt(layer.key_width))
        else:
            sums = (query[:, :, :, None] + key[:, :, None]).tanh()
            scores = self.check(f"{name}.scores", torch.einsum("bhtsk,hk->bhts", sums, layer.scoring_vector))
        if f"{name}.bias" in self.trace:
            away = self.at(f"{name}.positions")[:, None] - torch.arange(scores.shape[-1])
            scheme = self.model.get_submodule(BIASED[name.partition(".")[0]]).positions
            if hasattr(scheme, "slopes"):
                expected = -scheme.slopes[:, None, None] * away.abs()
            else:
                buckets = relative_buckets(-away, len(scheme.biases), scheme.max_distance, causal=hides_future)
                expected = scheme.biases[buckets].permute(2, 0, 1)
            scores = self.check(f"{name}.biased", scores + self.check(f"{name}.bias", expected))
        return self.mixed(name, scores, value, hides_future, getattr(layer, "window", None))

    def mixed(self, name: str, scores: Tensor, value: Tensor, hides_future: bool, window: int | None = None) -> Tensor:
        if hides_future:
            T, S = scores.shape[-2:]
            away = torch.arange(T)[:, None] - torch.arange(S)
            seen = (away >= 0) & (away < (window or T))
            assert torch.equal(self.at(f"{name}.mask"), seen.expand(scores.shape))
            scores = self.check(f"{name}.masked", torch.where(seen, scores, -torch.inf))
        powers = (scores - scores.amax(-1, keepdim=True)).exp()
        weights = self.check(f"{name}.weights", powers / powers.sum(-1, keepdim=True))
        mixed = self.check(f"{name}.mixed", torch.einsum("bhts,bhsv->bhtv", weights, value))
        return self.check(f"{name}.joined", torch.cat(mixed.unbind(1), dim=-1))

    def residual(self, name: str, x: Tensor, sublayer) -> Tensor:
        residual = self.model.get_submodule(name)
        stream = self.stream(name)
        if isinstance(residual, PreNorm):
            normed = self.check(f"{stream}.normed", normalised(residual.norm, x))
            return self.check(f"{stream}.output", x + sublayer(normed))
        total = self.check(f"{stream}.sum", x + sublayer(x))
        return self.check(f"{stream}.output", normalised(residual.norm, total))

    def stream(self, name: str) -> str:
        return name

    def feed_forward(self, name: str, x: Tensor) -> Tensor:
        layer, stream = self.model.get_submodule(name), self.stream(name)
        inner = self.check(f"{stream}.inner", linear(layer.inner_projection, x))
        kind = type(layer.activation).__name__.lower()
        if kind == "swiglu":
            gate, other = inner.chunk(2, -1)
            activated = gate * gate.sigmoid() * other
        else:
            activated = ACTIVATIONS[kind](inner)
        activated = self.check(f"{stream}.activated", activated)
        return self.check(f"{stream}.output", linear(layer.output_projection, activated))

    def block(self, name: str, x: Tensor, memory: Tensor | None, hides_future: bool) -> Tensor:
        def attend(kind: str, y: Tensor, other: Tensor, hides: bool) -> Tensor:
            layer = self.model.get_submodule(f"{name}.{kind}")
            joined = self.attention(f"{name}.{kind}", y, other, hides)
            return self.check(f"{name}.{kind}.output", linear(layer.output_projection, joined))

        x = self.residual(f"{name}.attention_residual", x, lambda y: attend("attention", y, y, hides_future))
        if memory is not None:
            x = self.residual(f"{name}.cross_residual", x, lambda y: attend("cross_attention", y, memory, False))
        return self.residual(f"{name}.feed_forward_residual", x, lambda y: self.feed_forward(f"{name}.feed_forward", y))

    def stack(self, name: str, x: Tensor, hides_future: bool, memory: Tensor | None = None) -> Tensor:
        for layer in range(len(self.model.get_submodule(name))):
            x = self.block(f"{name}.{layer}", x, memory, hides_future)
        return x

    def norm(self, name: str, x: Tensor) -> Tensor:
        norm = self.model.get_submodule(name)
        return x if isinstance(norm, nn.Identity) else self.check(f"{name}.output", normalised(norm, x))

    def finish(self, x: Tensor) -> None:
        logits = self.check("logits", linear(self.model.output, x))
        powers = (logits - logits.amax(-1, keepdim=True)).exp()
        self.check("probabilities", powers / powers.sum(-1, keepdim=True))


class RecomputedXLNet(Recomputed):
    """The same with two streams, whose scores depend on distances."""

    current = "content"

    def stream(self, name: str) -> str:
        block, number, rest = name.split(".", 2)
        return f"{block}.{number}.{self.current}.{rest}"

    def relative(self, name: str, own: Tensor, contents: Tensor) -> Tensor:
        layer: RelativeAttention = self.model.get_submodule(f"{name}.attention")
        stream = self.stream(f"{name}.attention")
        (H, K), _, (_, W) = layer.parts
        queries, keys, values = linear(layer.query_key_value_projection, contents).split([H * K, H * K, H * W], -1)
        if self.current == "query":
            queries = linear(layer.query_key_value_projection, own)[..., : H * K]
        query = self.check(f"{stream}.queries", by_head(queries, H))
        key, value = self.check(f"{stream}.keys", by_head(keys, H)), self.check(f"{stream}.values", by_head(values, H))
        T = own.shape[1]
        at_most = self.model.config.clamp_length or T
        # The query stream stands one place further on.
        away = torch.arange(T)[:, None] + (self.current == "query") - torch.arange(T)
        rates = 10000.0 ** (-torch.arange(0, own.shape[-1], 2) / own.shape[-1])
        angles = away.clamp(-at_most, at_most)[..., None] * rates
        waves = torch.cat([angles.sin(), angles.cos()], dim=-1)
        distances = linear(layer.distance_projection, waves).unflatten(-1, (H, K))
        by_content = self.check(
            f"{stream}.content_scores", torch.einsum("bhtk,bhsk->bhts", query + layer.content_bias[:, None], key)
        )
        seen = (away >= (self.current == "query")).expand(by_content.shape)
        by_distance = torch.einsum("bhtk,tshk->bhts", query + layer.position_bias[:, None], distances)
        close(self.at(f"{stream}.distance_scores")[seen], by_distance[seen])
        scores = self.check(f"{stream}.scores", by_content + self.trace[f"{stream}.distance_scores"])
        scores = self.check(f"{stream}.scaled", scores / math.sqrt(K))
        joined = self.mixed(stream, scores, value, True)
        return self.check(f"{stream}.output", linear(layer.output_projection, joined))

    def relative_block(self, name: str, own: Tensor, contents: Tensor, stream: str) -> Tensor:
        self.current = stream
        x = self.residual(f"{name}.attention_residual", own, lambda _: self.relative(name, own, contents))
        return self.residual(f"{name}.feed_forward_residual", x, lambda y: self.feed_forward(f"{name}.feed_forward", y))


@torch.no_grad()
def test_every_tensor_follows_from_those_before_it(case, trace: Trace) -> None:
    model = case.pipeline.model
    follow = (RecomputedXLNet if trace.family == "xlnet" else Recomputed)(model, trace)
    if trace.family == "encoder_decoder":
        memory = follow.norm("encoder_norm", follow.stack("encoder", follow.embedding("source_embedding"), False))
        written = follow.stack("decoder", follow.embedding("target_embedding"), True, memory)
        follow.finish(follow.norm("decoder_norm", written))
    elif trace.family == "decoder_only":
        follow.finish(follow.norm("norm", follow.stack("blocks", follow.embedding("embedding"), True)))
    elif trace.family == "encoder_only":
        hidden = follow.norm("norm", follow.stack("blocks", follow.embedding("embedding"), False))
        if "pooled" in trace:
            text = follow.check("pooled", hidden[:, 0])
            follow.finish(follow.check("pooler.output", linear(model.pooler[0], text).tanh()))
        else:
            dense = F.gelu(follow.check("transform.dense", linear(model.transform.dense, hidden)))
            activated = follow.check("transform.activated", dense)
            follow.finish(follow.check("transform.output", normalised(model.transform.norm, activated)))
    elif trace.family == "vision":
        patches = follow.check("patches.output", linear(model.patches.projection, follow.at("patches.windows")))
        x = follow.check("placed", patches + follow.at("positions.output"))
        if "class_token.output" in trace:
            first = (model.class_token.vector + model.class_token.position).expand(1, 1, -1)
            x = follow.check("class_token.output", torch.cat([first, x], dim=1))
        x = follow.norm("norm", follow.stack("blocks", x, False))
        pooled = x[:, 0] if model.config.pooling == "class_token" else x.mean(1)
        follow.finish(follow.check("pooled", pooled))
    else:
        contents = follow.at("embedding.vectors")
        places = model.query_embedding.expand_as(contents)
        for layer in range(len(model.blocks)):
            places = follow.relative_block(f"blocks.{layer}", places, contents, "query")
            if layer + 1 < len(model.blocks):
                contents = follow.relative_block(f"blocks.{layer}", contents, contents, "content")
        follow.finish(places)
        follow.seen |= {name for name in trace if name.endswith(".distances")}
    assert follow.seen == set(trace)


@torch.no_grad()
def test_the_logits_are_those_of_the_model(case, trace: Trace) -> None:
    logits = case.logits(case.pipeline.model)
    torch.testing.assert_close(trace["logits"], logits, atol=3e-5, rtol=1e-5)
    assert logits.std() > 0.1


def test_shapes_have_their_letters_and_tokens(trace: Trace) -> None:
    sizes: dict[str, int] = {}
    for name, tensor in trace.items():
        letters = trace.letters(name)
        assert len(letters) == tensor.dim(), name
        point = trace.points[name]
        for letter, size in zip(letters, tensor.shape, strict=True):
            if letter in "TS":
                assert size == len(trace.tokens[point.rows if letter == "T" else point.columns]), name
            elif letter in "BHKD":
                assert sizes.setdefault(letter, size) == size, name
    assert sizes["B"] == 1 and sizes["D"] == 22
