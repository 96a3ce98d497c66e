"""Whether attention knows the order of its inputs: outputs of permuted inputs, and a task that needs the order."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.claims.evidence import Chart, Evidence, Verdict, clearly_below, mean, number, series, told_parts, weighed
from heedful.claims.learning.course import Course, learn
from heedful.claims.workbench import Workbench
from heedful.layers.stacks import Encoder
from heedful.models.encoder_only import EncoderOnly
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.stack import StackConfig

SCHEMES = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative_buckets")
VOCABULARY, LENGTH, ROWS, RATE = 17, 13, 32, 0.004
# The most that rounding alone can do in single precision, through a few layers.
ROUNDING = 1e-5


@torch.no_grad()
def equivariance_error(stack: Encoder, x_BTD: Tensor, order_T: Tensor) -> float:
    """The distance from f(permuted x) to permuted f(x), relative to the size of f(x)."""
    plain_BTD, permuted_BTD = stack(x_BTD), stack(x_BTD[:, order_T])
    return float((permuted_BTD - plain_BTD[:, order_T]).norm() / plain_BTD.norm())


def left_neighbours(seed: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Random rows of tokens, and the token to the left of each; the first one's neighbour is itself."""
    generator = torch.Generator().manual_seed(sum(part * 1009**place for place, part in enumerate(seed)))
    ids_BT = torch.randint(0, VOCABULARY, (ROWS, LENGTH), generator=generator)
    return ids_BT, torch.cat([ids_BT[:, :1], ids_BT[:, :-1]], 1)


def learned_accuracy(scheme: str, seed: int, steps: int) -> float:
    """The share of left neighbours that a model finds after some steps."""
    torch.manual_seed(seed)
    stack = StackConfig(2, "pre", 0.0, AttentionConfig(4))
    model = EncoderOnly(
        EncoderOnlyConfig(VOCABULARY, 48, LENGTH, scheme, stack=stack, head="tags", num_labels=VOCABULARY)
    )

    def loss(step: int) -> Tensor:
        ids_BT, left_BT = left_neighbours((seed, step + 1))
        return F.cross_entropy(model(ids_BT).flatten(0, 1), left_BT.flatten())

    learn(model, loss, Course(steps, RATE))
    with torch.no_grad():
        ids_BT, left_BT = left_neighbours((seed, 0))
        return float((model(ids_BT).argmax(-1) == left_BT).float().mean())


def judge(errors: dict[str, list[float]], accuracy: dict[str, list[float]]) -> tuple[Verdict, str]:
    """It holds if only a stack without positions is equivariant, and such a stack cannot learn the order."""
    with_positions = [scheme for scheme in errors if scheme != "none"]
    none, broken = max(errors["none"]), min(min(errors[scheme]) for scheme in with_positions)
    words = (
        f"without positions the outputs, put back in order, are changed by {none:.1e} of their size, of which rounding "
        f"may be {ROUNDING:.0e}; with every scheme by {broken:.1e} or more. Of the left neighbours, a model without "
        f"positions finds {mean(accuracy['none']):.0%}, the others "
        f"{min(mean(accuracy[each]) for each in with_positions):.0%} or more"
    )
    parts = {
        "equivariant without positions": none <= ROUNDING,
        "not equivariant with any scheme": broken > 10 * ROUNDING,
        "the order is learned better with every scheme": all(
            clearly_below(accuracy["none"], accuracy[each]) for each in with_positions
        ),
    }
    return weighed(words, parts) if none <= ROUNDING else ("does not hold at this size", told_parts(words, parts))


def measure(bench: Workbench) -> Evidence:
    """Random permutations of random inputs, and a small task, with each scheme."""
    errors: dict[str, list[float]] = {}
    for scheme in SCHEMES:
        errors[scheme] = []
        for seed in (1, 2, 3):
            torch.manual_seed(seed)
            stack = Encoder(64, StackConfig(3, "pre", 0.0, AttentionConfig(4)), scheme, 31).eval()
            for _ in range(5):
                errors[scheme].append(equivariance_error(stack, torch.randn(3, 31, 64), torch.randperm(31)))
    steps = 300
    accuracy = {scheme: [_accuracy(bench, scheme, seed, steps) for seed in bench.seeds] for scheme in SCHEMES}
    verdict, words = judge(errors, accuracy)
    places = tuple(range(len(SCHEMES)))
    runs = list(zip(*accuracy.values(), strict=True))
    return Evidence(
        "3-layer stacks at their first weights, 31 random vectors, 5 permutations, 3 seeds; and for each scheme a "
        "2-layer "
        f"encoder that names each token's left neighbour, {steps} steps at a rate of {RATE:g}",
        verdict,
        words,
        (
            *(number(f"change of the outputs, {scheme}", errors[scheme]) for scheme in SCHEMES),
            *(number(f"left neighbours found, {scheme}", accuracy[scheme]) for scheme in SCHEMES),
        ),
        (
            Chart(
                "Change of the outputs under a permutation",
                "",
                "relative change",
                (series("change", places, list(zip(*errors.values(), strict=True))),),
                y_log=True,
                places=SCHEMES,
            ),
            Chart(
                "A task that needs the order",
                "",
                "left neighbours found",
                (series("found", places, runs),),
                places=SCHEMES,
            ),
        ),
    )


def _accuracy(bench: Workbench, scheme: str, seed: int, steps: int) -> float:
    def make() -> float:
        bench.tell(f"the order of tokens with positions: {scheme}, seed {seed}")
        return learned_accuracy(scheme, seed, steps)

    return bench.own.value("order", [scheme, seed, steps], make)
