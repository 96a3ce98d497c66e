"""What the heads of a trained translator do: look a fixed distance away, align words, or rest on delimiters."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from heedful.claims.evidence import Chart, Evidence, Verdict, mean, number, series, told_parts
from heedful.claims.learning.little_language import COMMA, END, PADDING, START, STOP, PairBatch
from heedful.claims.learning.observed import weights_of_layers
from heedful.claims.learning.translators import (
    RATE,
    TranslationTrial,
    held_out_pairs,
    trained_translator,
    translation_scores,
    translator_config,
)
from heedful.claims.workbench import Workbench
from heedful.layers.multi_head_attention import AttentionHeads
from heedful.models.encoder_decoder import EncoderDecoder

# A head has a role if it spends at least this share of its attention on it.
SHARE = 0.5
FARTHEST = 4
KINDS, ROLES = ("encoder", "decoder", "cross"), ("positional", "aligns words", "delimiters")


@dataclass(frozen=True)
class Role:
    """How much of a head's attention goes to one distance, to the aligned word, and to delimiters."""

    positional: float
    distance: int
    aligned: float
    delimiters: float

    @property
    def name(self) -> str:
        """The head's role, if it has one."""
        shares = {"aligns words": self.aligned, "positional": self.positional, "delimiters": self.delimiters}
        best = max(shares, key=lambda each: shares[each])
        return best if shares[best] >= SHARE else "none of these"


def positional_share(weights_BTS: Tensor, queries_BT: Tensor) -> tuple[float, int]:
    """The greatest share of the attention of real queries that goes to one distance, and that distance."""
    T, S = weights_BTS.shape[1:]
    best = (0.0, 0)
    for distance in range(-FARTHEST, FARTHEST + 1):
        rows = torch.arange(max(0, -distance), min(T, S - distance))
        counted_BR = queries_BT[:, rows].float()
        share = (weights_BTS[:, rows, rows + distance] * counted_BR).sum() / counted_BR.sum().clamp(min=1)
        best = max(best, (float(share), distance))
    return best


def share_on(weights_BTS: Tensor, keys: Tensor, queries_BT: Tensor) -> float:
    """The share of the attention of real queries that goes to some keys, B S or B T S."""
    keys = keys if keys.dim() == 3 else keys[:, None]
    on_BT = (weights_BTS * keys).sum(-1)
    return float((on_BT * queries_BT).sum() / queries_BT.sum())


def role_of(weights_BTS: Tensor, batch: PairBatch, kind: str) -> Role:
    """What a head does on a batch; in the encoder and the decoder no word is aligned with another."""
    queries_BT = batch.source_BS != PADDING if kind == "encoder" else batch.real_BT
    keys_BS = batch.input_BT if kind == "decoder" else batch.source_BS
    delimiters = torch.isin(keys_BS, torch.tensor([START, COMMA, STOP, END]))
    aligned = 0.0
    if kind == "cross":
        places = torch.arange(weights_BTS.shape[2])
        aligned = share_on(weights_BTS, places == batch.alignment_BT[..., None], queries_BT)
    positional, distance = positional_share(weights_BTS, queries_BT)
    return Role(positional, distance, aligned, share_on(weights_BTS, delimiters, queries_BT))


@torch.no_grad()
def without_head(model: EncoderDecoder, kind: str, layer: int, head: int) -> EncoderDecoder:
    """A copy of a model in which one head adds nothing."""
    changed = copy.deepcopy(model)
    blocks = changed.encoder if kind == "encoder" else changed.decoder
    block: Any = blocks[layer]
    attention = cast(AttentionHeads, block.cross_attention if kind == "cross" else block.attention)
    width = attention.value_width
    attention.output_projection.weight[:, head * width : (head + 1) * width] = 0.0
    return changed


def judge(roles: list[str], losses: list[float], accuracy: float) -> tuple[Verdict, str]:
    """It holds if heads have two roles or more, and in part if all that have one have the same."""
    words = (
        f"of {len(roles)} heads {roles.count('positional')} look at one distance, {roles.count('aligns words')} at the "
        f"aligned word, {roles.count('delimiters')} at delimiters, and {roles.count('none of these')} at none of "
        f"these; without one head the loss rises by {min(losses):.3f} to {max(losses):.3f}, and the model gets "
        f"{accuracy:.1%} of the words right"
    )
    if accuracy < 0.8:
        return "too short to tell", words
    parts = {name: name in roles for name in ROLES}
    held = sum(parts.values())
    verdict: Verdict = "holds" if held > 1 else "holds in part" if held else "does not hold at this size"
    return verdict, told_parts(words, parts)


def measure(bench: Workbench) -> Evidence:
    """All heads of translators, and translations without each."""
    steps = bench.choose(400, 600)
    trials = [TranslationTrial(translator_config(), seed, steps) for seed in bench.seeds]
    rows = [head for trial in trials for head in _heads(bench, trial)]
    first = [row for row in rows if row["seed"] == bench.seeds[0]]
    scores = [translation_scores(trained_translator(bench, trial)) for trial in trials]
    verdict, words = judge(
        [row["role"] for row in rows], [row["lost"] for row in rows], mean([each[1] for each in scores])
    )
    places = tuple(f"{row['kind'][0]}{row['layer'] + 1}.{row['head'] + 1}" for row in first)
    shares = ("positional", "aligned", "delimiters")
    lines = tuple(series(share, range(len(first)), [[row[share] for row in first]]) for share in shares)
    lost = series("loss added", range(len(first)), [[row["lost"] for row in first]])
    return Evidence(
        f"2+2-layer translators of a little language whose alignments are known, 4 heads, {steps} steps at a rate "
        f"of {RATE:g}; in the charts e, d and c are heads of the encoder, the decoder and between them, by layer "
        "and head, of the first seed",
        verdict,
        words,
        (
            number("right words", [each[1] for each in scores]),
            *(
                number(
                    f"heads: {name}",
                    [sum(row["role"] == name and row["seed"] == seed for row in rows) for seed in bench.seeds],
                )
                for name in (*ROLES, "none of these")
            ),
            number("loss added without a head", [row["lost"] for row in rows], "nats/word"),
        ),
        (
            Chart("Where the attention goes", "", "share of attention", lines, places=places),
            Chart("What is lost without a head", "", "loss added", (lost,), places=places),
        ),
    )


def _heads(bench: Workbench, trial: TranslationTrial) -> list[dict[str, Any]]:
    """Every head of a model: its role, and the loss that is added without it."""
    model, batch = trained_translator(bench, trial), held_out_pairs()
    layers = weights_of_layers(model, batch.source_BS, batch.input_BT, batch.source_lengths_B)
    # The encoder's layers come first; then each decoder block has self-attention and cross-attention.
    encoder = len(model.encoder)
    found = []
    plain, _ = translation_scores(model, batch)
    for number_of_layer, weights_BHTS in enumerate(layers):
        after = number_of_layer - encoder
        kind = "encoder" if after < 0 else ("decoder", "cross")[after % 2]
        layer = number_of_layer if after < 0 else after // 2
        for head in range(weights_BHTS.shape[1]):
            role = role_of(weights_BHTS[:, head], batch, kind)
            lost = translation_scores(without_head(model, kind, layer, head), batch)[0] - plain
            place = {"seed": trial.seed, "kind": kind, "layer": layer, "head": head}
            found.append({**place, **vars(role), "role": role.name, "lost": lost})
    return found
