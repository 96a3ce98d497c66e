"""A trace as the data of its page: the parts of the model in order, their steps, and numbers in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heedful.errors import UserError
from heedful.inspection.explain.packed_floats import packed_floats
from heedful.inspection.explain.steps import step_of
from heedful.inspection.trace.trace import Trace

FORMAT = 1
# How many logits of a position the page shows.
LIKELIEST = 20
# The most numbers on a page: each takes two bytes, and browsers open some 30 MB at once.
MOST_NUMBERS = 12_000_000
# Not on the page as such: a mask shows in what it hides, and only the likeliest answers are listed.
LEFT_OUT = (".mask", "logits", "probabilities")
STACKS = ("encoder", "decoder", "blocks")
GROUPS = {
    "attention": "Self-attention",
    "cross_attention": "Attention to the source",
    "feed_forward": "Feed-forward",
}
TITLES = {
    "source_embedding": "Source embedding",
    "target_embedding": "Target embedding",
    "embedding": "Embedding",
    "encoder_norm": "Last norm",
    "decoder_norm": "Last norm",
    "norm": "Last norm",
    "patches": "Patches",
    "positions": "Positions",
    "placed": "Patches with positions",
    "neighbourhood": "Neighbourhood",
    "class_token": "Class token",
    "pooled": "Pooling",
    "pooler": "Pooler",
    "transform": "Transform",
}


@dataclass(frozen=True)
class Explained:
    """A trace with what its page says about the model: how it is built, and what the answers are called.

    `changes` are the switches that were set; `text` is what the page can compute again.
    """

    trace: Trace
    summary: str
    pre_norm: bool
    activation: str
    answer_name: Callable[[int], str]
    changes: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The document of the page."""
        trace = self.trace
        count = sum(trace[name].numel() for name in self._names())
        if count > MOST_NUMBERS:
            tokens = sum(len(labels) for name, labels in trace.tokens.items() if name != "next")
            raise UserError(
                f"the page would hold {count:,} numbers, and {MOST_NUMBERS:,} are the most: give less than these "
                f"{tokens:,} tokens, about {max(1, tokens * MOST_NUMBERS // count):,}, or a smaller model"
            )
        return {
            "format": FORMAT,
            "model": trace.model,
            "family": trace.family,
            "summary": self.summary,
            "texts": list(trace.texts),
            "sequences": trace.tokens,
            "written": trace.written,
            "norm": "pre" if self.pre_norm else "post",
            "parts": self._parts(),
            "answers": self._answers(),
            "changes": self.changes,
            "leak": None if self.changes.get("mask", True) else leak(trace),
        }

    def html(self) -> str:
        """The page, in one file that needs no network."""
        from heedful.inspection.explain.explain_page import explain_page

        return explain_page(self.to_json())

    def _names(self) -> list[str]:
        return [name for name in self.trace if not name.endswith(LEFT_OUT)]

    def _parts(self) -> list[dict[str, Any]]:
        parts: dict[str, dict[str, Any]] = {}
        for name in self._names():
            part = part_of(name)
            entry = parts.setdefault(part, {"name": part, **_described(part), "groups": []})
            title = _group_title(name)
            if not entry["groups"] or entry["groups"][-1]["title"] != title:
                entry["groups"].append({"title": title, "steps": []})
            entry["groups"][-1]["steps"].append(self._step(name))
        return list(parts.values())

    def _step(self, name: str) -> dict[str, Any]:
        point, tensor = self.trace.points[name], self.trace[name]
        letters = point.letters
        if letters.startswith("B"):
            letters, tensor = letters[1:], tensor[0]
        step = step_of(name, pre_norm=self.pre_norm)
        sizes = dict(zip(letters, tensor.shape, strict=True))
        formula = step.formula
        for key, value in {"{K}": sizes.get("K", self._head_width()), "{H}": self._heads(name)}.items():
            formula = formula.replace(key, str(value))
        code = step.code
        return {
            "name": name,
            "title": step.title,
            "formula": formula.replace("{activation}", self.activation),
            "about": step.about,
            "code": None if code is None else code.to_json(),
            "letters": letters,
            "shape": list(tensor.shape),
            "rows": point.columns if "S" in letters and "T" not in letters else point.rows,
            "columns": point.columns if letters.endswith("TS") else None,
            **_numbers(tensor),
        }

    def _head_width(self) -> int:
        return next(each.shape[-1] for name, each in self.trace.items() if name.endswith(".queries"))

    def _heads(self, name: str) -> int:
        mixed = self.trace.tensors.get(f"{name.rpartition('.')[0]}.mixed")
        return 1 if mixed is None else mixed.shape[1]

    def _answers(self) -> list[list[dict[str, Any]]]:
        """The likeliest answers with logit and probability, for each position that answers, or for the whole input."""
        if "logits" not in self.trace:
            return []
        logits, shares = (self.trace[name][0].reshape(-1, self.trace[name].shape[-1]) for name in LEFT_OUT[1:])
        best = logits.topk(min(LIKELIEST, logits.shape[-1])).indices.tolist()
        return [
            [
                {"token": self.answer_name(token), "logit": float(row[token]), "probability": float(share[token])}
                for token in tokens
            ]
            for tokens, row, share in zip(best, logits, shares.double(), strict=True)
        ]


def leak(trace: Trace) -> float | None:
    """The share of attention that goes to later tokens, where a text of several is written token by token."""
    own = {trace.written, "text"} if trace.written == "next" else {trace.written}
    names = [name for name, point in trace.points.items() if name.endswith(".weights") and point.rows == point.columns]
    weights = [trace[name] for name in names if trace.points[name].rows in own]
    # The last token has nothing ahead of it, and so the only one neither.
    shares = [each.triu(1).sum(-1)[..., :-1].mean() for each in weights if each.shape[-1] > 1]
    return float(torch.stack(shares).mean()) if shares else None


def part_of(name: str) -> str:
    """The part of the model that a point belongs to: a block (in XLNet, one stream of it), or a part around them."""
    words = name.split(".")
    if words[0] not in STACKS:
        return words[0]
    return ".".join(words[:3] if words[2] in ("content", "query") else words[:2])


def _described(part: str) -> dict[str, Any]:
    """Where a part is drawn, what it is called, and whether it is a block."""
    first, *rest = part.split(".")
    column = {"source_embedding": "encoder", "encoder_norm": "encoder", "encoder": "encoder"}.get(first)
    if column is None:
        column = "decoder" if first.startswith(("target_", "decoder")) else "model"
    if not rest:
        return {"column": column, "title": TITLES[first], "block": False}
    stream = f", {rest[1]} stream" if len(rest) > 1 else ""
    return {"column": column, "title": f"Block {int(rest[0]) + 1}{stream}", "block": True}


def _group_title(name: str) -> str:
    """The sub-layer that a step belongs to; a residual connection belongs to the sub-layer that it goes around."""
    *parts, _ = name.split(".")
    if not parts or parts[0] not in STACKS:
        return ""
    sublayer = parts[-1].removesuffix("_residual")
    return GROUPS["cross_attention" if sublayer == "cross" else sublayer]


def _numbers(tensor: Tensor) -> dict[str, Any]:
    """Whole numbers as they are, others packed."""
    if not tensor.is_floating_point():
        return {"integers": tensor.long().tolist()}
    return {"packed": packed_floats(tensor.to(torch.float32).cpu().numpy())}
