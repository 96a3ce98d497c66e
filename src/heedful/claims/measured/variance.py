"""The variance of query times key: for random vectors, and for those of a trained model."""

from __future__ import annotations

from itertools import chain

import torch
from torch import Tensor

from heedful.claims.evidence import Chart, Evidence, Verdict, fitted_power, mean, number, series, told_parts, weighed
from heedful.claims.learning.observed import queries_and_keys
from heedful.claims.learning.text import held_out_windows
from heedful.claims.learning.text_trials import LENGTH, RATE, common_trial, trained_model
from heedful.claims.workbench import Workbench
from heedful.models.decoder_only import DecoderOnly

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)


def product_variance(query_NK: Tensor, key_NK: Tensor) -> float:
    """The variance of the products of each query with its key."""
    return float((query_NK * key_NK).sum(-1).var())


def standardised(x_NK: Tensor) -> Tensor:
    """Vectors whose components each have a mean of 0 and a variance of 1 over all vectors."""
    return (x_NK - x_NK.mean(0)) / x_NK.std(0).clamp(min=1e-12)


def head_variances(query_NK: Tensor, key_NK: Tensor) -> tuple[float, float]:
    """The variance of a head's own scores, scaled; and of its standardised vectors, divided by their width."""
    own = product_variance(query_NK, key_NK) / query_NK.shape[1]
    return own, product_variance(standardised(query_NK), standardised(key_NK)) / query_NK.shape[1]


def judge(exponent: float, scaled: list[float], trained: list[float]) -> tuple[Verdict, str]:
    """It holds if the samples follow the law, but only in part if a trained model's vectors are far from it."""
    words = (
        f"the variance grows as d_k to the power {exponent:.3f}, and scaled it stays within {min(scaled):.2f} to "
        f"{max(scaled):.2f}; the trained models' components, brought to unit variance, give {mean(trained):.2f} times "
        "d_k on average, where independent ones would give 1"
    )
    lawful = abs(exponent - 1) <= 0.05 and max(abs(each - 1) for each in scaled) <= 0.1
    parts = {"random vectors follow the law": lawful, "so do a trained model's": 0.5 < mean(trained) < 2}
    return weighed(words, parts) if lawful else ("does not hold at this size", told_parts(words, parts))


def measure(bench: Workbench) -> Evidence:
    """Draw vectors, and look into a trained model."""
    samples = bench.choose(20_000, 50_000)
    plain, scaled = [], []
    for seed in (1, 2, 3):
        generator = torch.Generator().manual_seed(seed)
        row = []
        for width in WIDTHS:
            query, key = (torch.randn(samples, width, generator=generator) for _ in range(2))
            row.append(product_variance(query, key))
        plain.append(row)
        scaled.append([value / width for value, width in zip(row, WIDTHS, strict=True)])
    by_seed = [variances_of_heads(trained_model(bench, common_trial(bench, seed))) for seed in bench.seeds]
    own, independent = ([[each[place] for each in heads] for heads in by_seed] for place in range(2))
    exponent = fitted_power(WIDTHS, [mean(column) for column in zip(*plain, strict=True)])
    verdict, words = judge(exponent, [mean(column) for column in zip(*scaled, strict=True)], list(chain(*independent)))
    heads = range(len(own[0]))
    lines = [series("of its own queries and keys", heads, own)]
    lines += [series("of their components at unit variance", heads, independent)]
    return Evidence(
        f"{samples:,} pairs of normal vectors for each d_k from 4 to 1024, 3 seeds; 2-layer models of characters with "
        f"d_k {WIDTHS[2]}, trained at a rate of {RATE:g}, {len(bench.seeds)} of them, all their heads on held-out text",
        verdict,
        words,
        (
            number("exponent of d_k", [fitted_power(WIDTHS, row) for row in plain]),
            number("variance after 1/sqrt(d_k), all d_k", [value for row in scaled for value in row]),
            number("trained models: scaled scores, over all heads", list(chain(*own))),
            number("trained models: at unit variance, divided by d_k", list(chain(*independent))),
        ),
        (
            Chart(
                "Variance of q.k of unit-variance vectors",
                "d_k",
                "variance",
                (series("q.k", WIDTHS, plain), series("q.k / sqrt(d_k)", WIDTHS, scaled)),
                x_log=True,
                y_log=True,
            ),
            Chart(
                "Trained models, head by head",
                "head",
                "variance of q.k / sqrt(d_k)",
                tuple(lines),
                places=tuple(str(head + 1) for head in heads),
            ),
        ),
    )


def variances_of_heads(model: DecoderOnly) -> list[tuple[float, float]]:
    """Both variances of each head of a model, on held-out text."""
    layers = queries_and_keys(model, held_out_windows(LENGTH, 64 * LENGTH)[:, :-1])
    return [
        head_variances(*_pairs(query_BHTK[:, head], key_BHSK[:, head]))
        for query_BHTK, key_BHSK in layers
        for head in range(query_BHTK.shape[1])
    ]


def _pairs(query_BTK: Tensor, key_BSK: Tensor) -> tuple[Tensor, Tensor]:
    """Each query with one key of its own text, at a random earlier place or its own."""
    B, T, K = query_BTK.shape
    places_T = torch.arange(T)
    chosen_BT = (torch.rand(B, T, generator=torch.Generator().manual_seed(1)) * (places_T + 1)).long()
    key_BTK = key_BSK.gather(1, chosen_BT[..., None].expand(-1, -1, K))
    return query_BTK.reshape(-1, K), key_BTK.reshape(-1, K)
