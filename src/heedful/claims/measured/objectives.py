"""What GPT's next token, BERT's masks and XLNet's two streams can fill in, after the same training time on text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.claims.evidence import Evidence, Verdict, bars, clearly_below, mean, number, series, shown_loss, weighed
from heedful.claims.learning.course import PILOT_SEED, Course, best_rate, learn, told_rates
from heedful.claims.learning.text import counted_pairs_loss, next_token_loss, reference_text, windows
from heedful.claims.learning.text_trials import LENGTH, ROWS, small_config
from heedful.claims.workbench import Workbench
from heedful.models.decoder_only import DecoderOnly
from heedful.models.encoder_only import EncoderOnly
from heedful.models.xlnet import XLNet
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.xlnet import XLNetConfig
from heedful.tasks.language_modeling.permutation import PermutationBatch, draw_ranks, permutation_loss

KINDS = ("GPT", "BERT", "XLNet")
MASKED_SHARE, HOLE, EVALUATED = 0.15, LENGTH // 2, 256


def new_model(kind: str, seed: int) -> nn.Module:
    """A model of a kind, all of about the same size; BERT's vocabulary has a mask at its end."""
    torch.manual_seed(seed)
    config, vocabulary = small_config(), reference_text().vocabulary_size
    if kind == "GPT":
        return DecoderOnly(config)
    if kind == "BERT":
        return EncoderOnly(
            EncoderOnlyConfig(
                vocabulary + 1,
                config.width,
                LENGTH,
                config.positions,
                embedding=config.embedding,
                stack=config.stack,
                head="masked",
            )
        )
    stack = replace(config.stack, norm="post", attention=replace(config.stack.attention, bias=False))
    return XLNet(XLNetConfig(vocabulary, config.width, LENGTH, 0, stack=stack))


def masked_loss(model: nn.Module, ids_BT: Tensor, seed: tuple[int, ...]) -> Tensor:
    """The loss of the characters behind masks."""
    hidden_BT = torch.from_numpy(np.random.default_rng(seed).random(ids_BT.shape) < MASKED_SHARE)
    hidden_BT[:, 0] |= ~hidden_BT.any(1)
    logits_BTV = model(ids_BT.masked_fill(hidden_BT, reference_text().vocabulary_size))
    return F.cross_entropy(logits_BTV[hidden_BT], ids_BT[hidden_BT])


def ordered_loss(model: XLNet, ids_BX: Tensor, seed: tuple[int, ...]) -> Tensor:
    """The loss of all characters, each row read in its own order, about half of them from left to right."""
    B, X = ids_BX.shape
    T = X - 1
    ranks_BX = torch.from_numpy(np.stack([draw_ranks(T, 0.5, (*seed, row)) for row in range(B)]))
    places_BT = torch.arange(1, X).expand(B, -1)
    documents_BT, memory = torch.zeros(B, T, dtype=torch.long), torch.zeros(B, 0, dtype=torch.long)
    batch = PermutationBatch(ids_BX[:, :-1], ids_BX[:, 1:], places_BT, ranks_BX, memory, documents_BT)
    return permutation_loss(model, batch, 0.0)[0] / batch.num_targets


def train(kind: str, seed: int, seconds: float, rate: float) -> tuple[nn.Module, float]:
    """A model trained for some seconds, and its training loss at the end."""
    model, text = new_model(kind, seed), reference_text().train

    def loss(step: int) -> Tensor:
        ids_BX = windows(text, ROWS, LENGTH + 1, (seed, step))
        if isinstance(model, XLNet):
            return ordered_loss(model, ids_BX, (seed, step))
        return masked_loss(model, ids_BX[:, :-1], (seed, step)) if kind == "BERT" else next_token_loss(model, ids_BX)

    learned = learn(model, loss, Course(100_000, rate, seconds=seconds))
    return model, learned.end


def at_the_end(model: nn.Module, ids_BT: Tensor) -> Tensor:
    """Logits for the last character of a row, from those before it."""
    if isinstance(model, XLNet):
        return model.output(model.hidden(ids_BT[:, :-1]))[:, -1]
    if isinstance(model, EncoderOnly):
        asked = ids_BT.clone()
        asked[:, -1] = reference_text().vocabulary_size
        return model(asked)[:, -1, :-1]
    return model(ids_BT[:, :-1])[:, -1]


def in_the_hole(model: nn.Module, ids_BT: Tensor) -> Tensor:
    """Logits for the character in the middle of a row, from everything that the model can use."""
    if isinstance(model, XLNet):
        B, T = ids_BT.shape
        seen_BTT = torch.ones(B, T, T, dtype=torch.bool)
        seen_BTT[:, :, HOLE] = False
        return model(ids_BT, seen_BTT, F.one_hot(torch.full((B, 1), HOLE), T).float())[:, 0]
    if isinstance(model, EncoderOnly):
        asked = ids_BT.clone()
        asked[:, HOLE] = reference_text().vocabulary_size
        return model(asked)[:, HOLE, :-1]
    return model(ids_BT[:, :HOLE])[:, -1]


def by_trying_all(model: nn.Module, ids_BT: Tensor) -> Tensor:
    """Logits for the middle character from a model of next characters: how likely each makes everything after it."""
    found = []
    for row in ids_BT:
        tried_VT = row.repeat(reference_text().vocabulary_size, 1)
        tried_VT[:, HOLE] = torch.arange(len(tried_VT))
        logp = model(tried_VT[:, :-1])[:, HOLE - 1 :].log_softmax(-1)
        found.append(logp.gather(2, tried_VT[:, HOLE:, None])[..., 0].sum(1))
    return torch.stack(found)


@torch.no_grad()
def scores(model: nn.Module, kind: str) -> dict[str, float]:
    """The loss for the end of a text, and for a hole in its middle."""
    ids_BT = windows(reference_text().held_out, EVALUATED, LENGTH, (0, 0))
    found = {
        "at the end": F.cross_entropy(at_the_end(model, ids_BT), ids_BT[:, -1]),
        "in the middle": F.cross_entropy(in_the_hole(model, ids_BT), ids_BT[:, HOLE]),
    }
    if kind == "GPT":
        part = ids_BT[: EVALUATED // 2]
        found["in the middle, trying all characters"] = F.cross_entropy(by_trying_all(model, part), part[:, HOLE])
    return {name: shown_loss(float(value)) for name, value in found.items()}


def judge(found: dict[str, dict[str, list[float]]]) -> tuple[Verdict, str]:
    """Four parts: GPT is best at the end, BERT and XLNet fill a hole better, and XLNet is better at the end than BERT.

    Each kind must have learned more than pairs of characters in the same time, at one of the places at least.
    """
    ends = {kind: {place: mean(values) for place, values in places.items()} for kind, places in found.items()}
    words = "after equal time, " + "; ".join(
        f"{kind}: " + ", ".join(f"{value:.2f} {place}" for place, value in places.items())
        for kind, places in ends.items()
    )
    if max(min(places.values()) for places in ends.values()) > counted_pairs_loss():
        return "too short to tell", words
    last, middle = ({kind: places[name] for kind, places in found.items()} for name in ("at the end", "in the middle"))
    return weighed(
        words,
        {
            "GPT best at the end": all(clearly_below(last["GPT"], last[kind]) for kind in ("BERT", "XLNet")),
            "BERT fills a hole better": clearly_below(middle["BERT"], middle["GPT"]),
            "XLNet fills a hole better": clearly_below(middle["XLNet"], middle["GPT"]),
            "XLNet better at the end than BERT": clearly_below(last["XLNet"], last["BERT"]),
        },
    )


def measure(bench: Workbench) -> Evidence:
    """The three kinds, the same time each."""
    seconds = bench.choose(6.0, 30.0)
    rates = {kind: _rate(bench, kind, seconds / 4) for kind in KINDS}
    runs = {kind: [_kept(bench, kind, seed, seconds, rates[kind]) for seed in bench.seeds] for kind in KINDS}
    found = {kind: {place: [each[place] for each in rows] for place in rows[0]} for kind, rows in runs.items()}
    verdict, words = judge(found)
    sizes = ", ".join(f"{kind} {sum(each.numel() for each in new_model(kind, 1).parameters()):,}" for kind in KINDS)
    places = ("at the end", "in the middle")
    lines = [series(kind, (0, 1), [[each[place] for place in places] for each in rows]) for kind, rows in runs.items()]
    return Evidence(
        f"models of characters of 2 layers and width 64 ({sizes} parameters), an equal time of {seconds:g} seconds of "
        "training each, in which cheaper models take more steps, each kind at the "
        f"best of three rates ({told_rates(rates)}); {EVALUATED} held-out rows of "
        f"{LENGTH} characters, of which the last or the {HOLE + 1}th is to be guessed",
        verdict,
        words,
        tuple(
            number(f"{kind}, {place}", values, "nats/character")
            for kind, all_places in found.items()
            for place, values in all_places.items()
        ),
        (bars("Loss of a character", "nats per character", places, lines),),
    )


def _rate(bench: Workbench, kind: str, seconds: float) -> float:
    def end(rate: float) -> float:
        made_from = [kind, seconds, rate]
        return bench.own.value("pilot", made_from, lambda: train(kind, PILOT_SEED, seconds, rate)[1])

    return best_rate(end)


def _kept(bench: Workbench, kind: str, seed: int, seconds: float, rate: float) -> dict[str, Any]:
    def make() -> dict[str, float]:
        bench.tell(f"{kind}, seed {seed}, {seconds:g} seconds")
        return scores(train(kind, seed, seconds, rate)[0], kind)

    return bench.own.value("objective", [kind, seed, seconds, rate], make)
