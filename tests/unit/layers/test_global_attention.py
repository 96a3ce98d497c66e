import math

import pytest
import torch

from heedful.layers.global_attention import GlobalAttention

B, T, S, W = 3, 5, 7, 11
LENGTHS = torch.tensor([7, 4, 1])


def states(length: int, seed: int) -> torch.Tensor:
    return torch.randn(B, length, W, generator=torch.Generator().manual_seed(seed))


def score(attention: GlobalAttention, scoring: str, query: torch.Tensor, memory: torch.Tensor) -> float:
    """One score as the papers write it."""
    if scoring == "dot":
        return float(query @ memory)
    if scoring == "general":
        return float((attention.query_projection.weight @ query) @ memory)
    keys = attention.key_projection
    hidden = torch.tanh(attention.query_projection.weight @ query + keys.weight @ memory + keys.bias)
    return float(attention.scoring_vector[0] @ hidden)


@pytest.mark.parametrize("scoring", ["additive", "general", "dot"])
@torch.inference_mode()
def test_contexts_are_those_of_plain_loops(scoring: str) -> None:
    torch.manual_seed(1)
    attention, x, memory = GlobalAttention(W, scoring), states(T, 2), states(S, 3)
    mask = (torch.arange(S) < LENGTHS[:, None])[:, None, None]
    contexts = attention(x, attention.keys(memory), memory, mask)
    for b in range(B):
        for t in range(T):
            scores = [math.exp(score(attention, scoring, x[b, t], memory[b, s])) for s in range(int(LENGTHS[b]))]
            expected = sum(value / sum(scores) * memory[b, s] for s, value in enumerate(scores))
            torch.testing.assert_close(contexts[b, t], expected, atol=1e-5, rtol=0)
