"""Encoder-only, decoder-only and encoder-decoder models of the same blocks, on three tasks; and the wrong mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.claims.evidence import Chart, Evidence, Verdict, bars, clearly_below, mean, number, series, told_parts
from heedful.claims.learning.course import Course, learn
from heedful.claims.workbench import Workbench
from heedful.models.decoder_only import DecoderOnly
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.encoder_only import EncoderOnly
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.stack import StackConfig

FAMILIES = ("encoder-only", "decoder-only", "encoder-decoder")
TASKS = ("classify", "continue", "reverse")
# The usual family for each task.
MEANT = {"classify": "encoder-only", "continue": "decoder-only", "reverse": "encoder-decoder"}
# Shares of right answers that differ by less are alike.
NEAR = 0.02
TOKENS, LENGTH, PERIOD, CLASSES = 8, 10, 3, 3
# Ids after those of the tokens: one begins a row, one hides a token, one ends a question.
CLASS, MASK, SEPARATOR = TOKENS, TOKENS + 1, TOKENS + 2
VOCABULARY, WIDTH, ROWS, RATE, POSITIONS = TOKENS + 3, 48, 32, 0.003, "sinusoidal"


def draw(task: str, rows: int, seed: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Questions B T and answers B A: the commonest of three tokens, a repeated pattern's next token, the reverse."""
    generator = torch.Generator().manual_seed(seed[0] * 1_000_003 + seed[1])
    ids_BT = torch.randint(0, TOKENS, (rows, LENGTH), generator=generator)
    if task == "classify":
        counts = torch.stack([(ids_BT == each).sum(1) for each in range(CLASSES)], 1)
        # A tie goes to the lowest token.
        return ids_BT, counts.argmax(1, keepdim=True)
    if task == "continue":
        rows_BT = ids_BT[:, :PERIOD].repeat(1, LENGTH)[:, : LENGTH + 1]
        return rows_BT[:, :LENGTH], rows_BT[:, LENGTH:]
    return ids_BT, ids_BT.flip(1)


def answers(model: nn.Module, ids_BT: Tensor, answer_BA: Tensor) -> Tensor:
    """The logits B A V of the answers, as each family gives them; none is shown the token that it is to predict."""
    B, A = answer_BA.shape
    if isinstance(model, EncoderOnly):
        asked = torch.cat([ids_BT, torch.full((B, A), MASK)], 1)
        return model(asked)[:, -A:]
    start = torch.cat([torch.full((B, 1), SEPARATOR), answer_BA[:, :-1]], 1)
    if isinstance(model, EncoderDecoder):
        return model(ids_BT, start)
    return model(torch.cat([ids_BT, start], 1))[:, -A:]


def new_model(family: str, seed: int) -> nn.Module:
    """A model of two blocks, or of two and two for an encoder-decoder."""
    torch.manual_seed(seed)
    stack, longest = StackConfig(2, "pre", 0.0, AttentionConfig(4)), 2 * LENGTH + 2
    if family == "encoder-only":
        return EncoderOnly(
            EncoderOnlyConfig(VOCABULARY, WIDTH, longest, POSITIONS, stack=stack, head="tags", num_labels=VOCABULARY)
        )
    if family == "decoder-only":
        embedding = EmbeddingConfig()
        return DecoderOnly(DecoderOnlyConfig(VOCABULARY, WIDTH, longest, POSITIONS, embedding=embedding, stack=stack))
    return EncoderDecoder(EncoderDecoderConfig(VOCABULARY, WIDTH, longest, POSITIONS, encoder=stack, decoder=stack))


class Masked(nn.Module):
    """An encoder whose mask is that of a decoder, or a decoder without one."""

    def __init__(self, model: Any, *, causal: bool) -> None:
        super().__init__()
        self.model, self.causal = model, causal

    def forward(self, ids_BT: Tensor) -> Tensor:
        """The logits B T V with the wrong mask."""
        model, places_T = self.model, torch.arange(ids_BT.shape[1])
        x_BTD = model.blocks(model.embedding(ids_BT, places_T), causal=self.causal, positions=places_T)
        return model.output(model.norm(x_BTD))


def class_at_the_front(model: nn.Module, ids_BT: Tensor) -> Tensor:
    """The logits of a class token before the text, as in BERT."""
    return model(torch.cat([torch.full((len(ids_BT), 1), CLASS), ids_BT], 1))[:, :1]


def train_and_score(
    model: nn.Module, ask: Callable[[nn.Module, Tensor, Tensor], Tensor], task: str, seed: int, steps: int
) -> float:
    """The share of right answers after training."""

    def loss(step: int) -> Tensor:
        ids_BT, answer_BA = draw(task, ROWS, (seed, step + 1))
        return F.cross_entropy(ask(model, ids_BT, answer_BA).flatten(0, 1), answer_BA.flatten())

    learn(model, loss, Course(steps, RATE))
    with torch.no_grad():
        ids_BT, answer_BA = draw(task, 400, (seed, 0))
        return float((ask(model, ids_BT, answer_BA).argmax(-1) == answer_BA).float().mean())


@torch.no_grad()
def left_to_itself(model: nn.Module, seed: int) -> float:
    """How often the first token of an answer is right when none of the answer is shown."""
    ids_BT, answer_BA = draw("reverse", 400, (seed, 0))
    asked = torch.cat([ids_BT, torch.full((len(ids_BT), 1), SEPARATOR)], 1)
    return float((model(asked)[:, -1].argmax(-1) == answer_BA[:, 0]).float().mean())


def judge(right: dict[str, dict[str, list[float]]], wrong: dict[str, float]) -> tuple[Verdict, str]:
    """It holds if each task's usual family is within 2 points of the best, and clearly the best in at least one task.

    That the wrong masks fail is asked too, but alone says little: the first hides all that is asked for.
    """
    means = {family: {task: mean(found) for task, found in tasks.items()} for family, tasks in right.items()}
    words = "; ".join(
        f"{task}: " + ", ".join(f"{means[family][task]:.0%} ({family})" for family in FAMILIES) for task in TASKS
    )
    words += "; " + "; ".join(f"{name}: {share:.0%}" for name, share in wrong.items())
    best = {task: max(means[family][task] for family in FAMILIES) for task in TASKS}
    if min(means[MEANT[task]][task] for task in TASKS) <= 0.85:
        return "too short to tell", words
    alike = [task for task in TASKS if best[task] - min(means[family][task] for family in FAMILIES) <= NEAR]
    words += f"; all families do alike in: {', '.join(alike)}" if alike else ""
    fits = {f"{MEANT[task]} fit to {task}": means[MEANT[task]][task] >= best[task] - NEAR for task in TASKS}
    clear = [task for task in TASKS if clearly_best(right, task)]
    parts = {
        **fits,
        f"clearly best in {', '.join(clear) or 'a task'}": bool(clear),
        "wrong masks fail": max(wrong.values()) < 0.7,
    }
    verdict: Verdict = (
        "holds" if all(parts.values()) else "holds in part" if any(fits.values()) else "does not hold at this size"
    )
    return verdict, told_parts(words, parts)


def clearly_best(right: dict[str, dict[str, list[float]]], task: str) -> bool:
    """Whether a task's usual family is better in every run than every other family in any, and not just a little."""
    usual = right[MEANT[task]][task]
    others = [right[family][task] for family in FAMILIES if family != MEANT[task]]
    return all(clearly_below(each, usual) and mean(usual) > mean(each) + NEAR for each in others)


def measure(bench: Workbench) -> Evidence:
    """Every family on every task, and two models with the wrong mask."""
    steps = bench.choose(250, 300)
    right = {
        family: {task: [_kept(bench, family, task, seed, steps) for seed in bench.seeds] for task in TASKS}
        for family in FAMILIES
    }
    wrong = {
        name: [_wrong_mask(bench, name, seed, steps) for seed in bench.seeds]
        for name in ("a decoder's mask, class token first", "a decoder without a mask, left to itself")
    }
    verdict, words = judge(right, {name: mean(found) for name, found in wrong.items()})
    return Evidence(
        f"2 blocks of width {WIDTH} (2 and 2 for the encoder-decoder), {steps} steps each at a rate of {RATE:g}: "
        f"the commonest of three tokens, the next token of a repeated pattern, a reversed row of {LENGTH}; a causal "
        "encoder whose class token comes first; a decoder that learned without a mask and then has to go on by "
        "itself",
        verdict,
        words,
        (
            *(number(f"{task}, {family}", right[family][task]) for task in TASKS for family in FAMILIES),
            *(number(f"wrong mask: {name}", found) for name, found in wrong.items()),
        ),
        (
            bars(
                "Right answers",
                "share",
                TASKS,
                [series(family, range(3), list(zip(*right[family].values(), strict=True))) for family in FAMILIES],
            ),
            Chart(
                "With the wrong mask",
                "",
                "share",
                (series("right", range(2), list(zip(*wrong.values(), strict=True))),),
                places=tuple(wrong),
            ),
        ),
    )


def _kept(bench: Workbench, family: str, task: str, seed: int, steps: int) -> float:
    def make() -> float:
        bench.tell(f"{task}: {family}, seed {seed}")
        return train_and_score(new_model(family, seed), answers, task, seed, steps)

    return bench.own.value("task", [family, task, seed, steps], make)


def _wrong_mask(bench: Workbench, name: str, seed: int, steps: int) -> float:
    def make() -> float:
        bench.tell(f"{name}, seed {seed}")
        if name.startswith("a decoder's mask"):
            model = Masked(new_model("encoder-only", seed), causal=True)
            return train_and_score(model, lambda model, ids, _: class_at_the_front(model, ids), "classify", seed, steps)
        model = Masked(new_model("decoder-only", seed), causal=False)
        train_and_score(model, answers, "reverse", seed, steps)
        return left_to_itself(model, seed)

    return bench.own.value("mask", [name, seed, steps], make)
