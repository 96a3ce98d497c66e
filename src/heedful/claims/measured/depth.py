"""What residual connections and layer norm do for depth: gradients by layer, and training, with and without each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from heedful.claims.evidence import Chart, Evidence, Verdict, clearly_below, mean, number, series, weighed
from heedful.claims.learning.course import PILOT_SEED, best_rate, told_rates
from heedful.claims.learning.text import counted_pairs_loss
from heedful.claims.learning.text_trials import TextTrial, learn_text, small_config
from heedful.claims.workbench import Workbench
from heedful.layers.blocks import PostNorm
from heedful.layers.stacks import Encoder, quieten
from heedful.models.decoder_only import DecoderOnly
from heedful.settings.attention import AttentionConfig
from heedful.settings.stack import StackConfig

KINDS = ("pre-norm", "post-norm", "residual, no norm", "norm, no residual", "neither")
WIDTH, LARGEST = 32, 1e12


class ResidualAlone(nn.Module):
    """x + Sublayer(x)."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sub-layer."""
        return x + sublayer(x)


class NormAlone(nn.Module):
    """LayerNorm(Sublayer(x))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sub-layer."""
        return self.norm(sublayer(x))


class Neither(nn.Module):
    """Sublayer(x)."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sub-layer."""
        return sublayer(x)


def change_residuals(model: Encoder | DecoderOnly, kind: str, width: int) -> None:
    """Remove the norm, the residual connection, or both, from around the sub-layers of a post-norm model.

    What is never normalised begins as quietly as in a pre-norm model, so that only the norm makes the difference.
    """
    made: dict[str, Callable[[], nn.Module]] = {
        "residual, no norm": ResidualAlone,
        "norm, no residual": lambda: NormAlone(width),
        "neither": Neither,
    }
    if kind not in made:
        return
    for module in model.modules():
        for name, child in list(module.named_children()):
            if isinstance(child, PostNorm):
                setattr(module, name, made[kind]())
    if kind == "residual, no norm":
        quieten(model.blocks)


def new_stack(kind: str, layers: int, seed: int) -> Encoder:
    """A stack of a kind at its first weights."""
    torch.manual_seed(seed)
    norm = "pre" if kind == "pre-norm" else "post"
    stack = Encoder(WIDTH, StackConfig(layers, norm, 0.0, AttentionConfig(4)), "none", 31)  # type: ignore[arg-type]
    change_residuals(stack, kind, WIDTH)
    return stack


def gradients_by_layer(kind: str, layers: int, seed: int) -> list[float]:
    """The norm of the gradient of each layer's input at the initial weights, from the first layer to the end."""
    stack = new_stack(kind, layers, seed)
    x_BTD, target_BTD = torch.randn(2, 4, 31, WIDTH, generator=torch.Generator().manual_seed(seed))
    hidden = [x_BTD.requires_grad_()]
    for block in stack.blocks:
        hidden.append(block(hidden[-1]))
    gradients = torch.autograd.grad(nn.functional.mse_loss(stack.norm(hidden[-1]), target_BTD), hidden)
    return [shown_size(float(each.norm())) for each in gradients]


def shown_size(value: float) -> float:
    """A size within the range of the charts; one that has overflowed becomes the largest."""
    return min(LARGEST, max(1 / LARGEST, value)) if math.isfinite(value) else LARGEST


def first_to_last(gradients: list[float]) -> float:
    """The gradient that reaches the first layer, as a multiple of that at the end of the stack."""
    return shown_size(gradients[0] / gradients[-1])


def new_model(kind: str, layers: int, seed: int) -> DecoderOnly:
    """A deep model of text at its first weights; its embeddings begin at the size that sub-layers expect."""
    config = small_config(WIDTH, layers, scaled_embedding=True)
    config = replace(config, stack=replace(config.stack, norm="pre" if kind == "pre-norm" else "post"))
    torch.manual_seed(seed)
    model = DecoderOnly(config)
    change_residuals(model, kind, WIDTH)
    return model


def end_of_training(kind: str, layers: int, seed: int, steps: int, rate: float) -> float:
    """The training loss of a deep model of text at the end."""
    model = new_model(kind, layers, seed)
    return learn_text(model, TextTrial(model.config, seed, steps, rate, rows=8)).end


def judge(shares: dict[str, float], losses: dict[str, list[float]]) -> tuple[Verdict, str]:
    """It holds if deep stacks with both parts, pre and post, learn, and those without one or both learn less.

    `shares` belong to the deepest stacks: the gradient that reaches the first layer, as a multiple of that at the end.
    """
    words = "in the deepest stack the gradient that reaches the first layer is " + ", ".join(
        f"{share:.2g} ({kind})" for kind, share in shares.items()
    )
    words += " times that at the end; the loss after training comes to " + ", ".join(
        f"{mean(each):.2f} ({kind})" for kind, each in losses.items()
    )
    ends = {kind: mean(each) for kind, each in losses.items()}
    if min(ends.values()) > counted_pairs_loss():
        return "too short to tell", words
    return weighed(
        words,
        {
            f"{kind} better than {without}": clearly_below(losses[kind], losses[without])
            for kind in KINDS[:2]
            for without in KINDS[2:]
        },
    )


def measure(bench: Workbench) -> Evidence:
    """Gradients of stacks of 2 to 48 layers, and training of one depth."""
    depths = bench.choose((2, 12, 48), (2, 6, 12, 24, 48))
    layers, steps = bench.choose(12, 16), bench.choose(30, 500)
    shares = {
        kind: [[first_to_last(gradients_by_layer(kind, depth, seed)) for depth in depths] for seed in (1, 2, 3)]
        for kind in KINDS
    }
    profiles = {kind: gradients_by_layer(kind, 24, 1) for kind in KINDS}
    rates = {kind: _rate(bench, kind, layers, steps // 3) for kind in KINDS}
    losses = {kind: [_kept(bench, kind, layers, seed, steps, rates[kind]) for seed in bench.seeds] for kind in KINDS}
    deepest = {kind: math.exp(mean([math.log(row[-1]) for row in rows])) for kind, rows in shares.items()}
    verdict, words = judge(deepest, losses)
    return Evidence(
        f"stacks of {depths[0]} to {depths[-1]} layers of width {WIDTH} at their first weights, 3 seeds; and models of "
        f"characters of {layers} layers that learn for {steps} steps, each kind at the best of three rates "
        f"({told_rates(rates)}); with pre-norm and with a residual alone, what sub-layers add begins divided by the "
        "root of their number; all embeddings are scaled",
        verdict,
        words,
        (
            *(
                number(
                    f"gradient at the first layer in that at the end, {depths[-1]} layers, {kind}",
                    [row[-1] for row in rows],
                )
                for kind, rows in shares.items()
            ),
            *(
                number(f"training loss, {layers} layers, {kind}", each, "nats/character")
                for kind, each in losses.items()
            ),
        ),
        (
            Chart(
                "The gradient at the first layer, in that at the end",
                "layers",
                "ratio",
                tuple(series(kind, depths, rows) for kind, rows in shares.items()),
                x_log=True,
                y_log=True,
            ),
            Chart(
                "The gradient by layer, 24 layers",
                "layers before it",
                "norm",
                tuple(series(kind, range(25), [found]) for kind, found in profiles.items()),
                y_log=True,
            ),
            Chart(
                f"Training {layers} layers",
                "",
                "training loss at the end",
                (series("loss", range(len(KINDS)), list(zip(*losses.values(), strict=True))),),
                places=KINDS,
            ),
        ),
    )


def _rate(bench: Workbench, kind: str, layers: int, steps: int) -> float:
    return best_rate(lambda rate: _kept(bench, kind, layers, PILOT_SEED, steps, rate))


def _kept(bench: Workbench, kind: str, layers: int, seed: int, steps: int, rate: float) -> float:
    def make() -> float:
        bench.tell(f"{layers} layers, {kind}, seed {seed}")
        return end_of_training(kind, layers, seed, steps, rate)

    return bench.own.value("deep", [kind, layers, seed, steps, rate], make)
