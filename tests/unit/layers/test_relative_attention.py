import pytest
import torch

from heedful.errors import UserError
from heedful.inspection.attention.recording import recording_view
from heedful.layers.relative_attention import (
    RelativeAttention,
    RelativeScoring,
    Seen,
    Sight,
    distance_sinusoids,
    relative_shift,
)
from heedful.settings.attention import AttentionConfig

B, H, T, M, K, V, D = 2, 3, 5, 4, 7, 11, 22
S = M + T


@pytest.mark.parametrize("num_distances", [S + 1, S + 2, S + T, S + T + 1])
def test_the_shift_gives_every_key_its_distance(num_distances: int) -> None:
    # Each score is its own distance, the largest one, S, first.
    scores = (S - torch.arange(num_distances)).expand(B, H, T, -1).contiguous()
    shifted = relative_shift(scores, S)
    assert shifted.shape == (B, H, T, S)
    for i in range(T):
        for j in range(S):
            if num_distances >= S + T or j <= M + i:  # a short table holds no negative distances
                assert (shifted[:, :, i, j] == M + i - j).all()


def test_the_shift_of_one_query() -> None:
    assert relative_shift(torch.arange(6)[None], 5).tolist() == [[1, 2, 3, 4, 5]]


def build(segments: bool = True) -> RelativeAttention:
    torch.manual_seed(1)
    attention = RelativeAttention(D, AttentionConfig(H, key_width=K, value_width=V, bias=False), segments)
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return attention


def test_scores_are_the_sums_of_the_paper() -> None:
    attention = build()
    x, memory = torch.randn(B, T, D), torch.randn(B, M, D)
    query, key, value = attention.contents(x, memory)
    distances = attention.distances(distance_sinusoids(torch.arange(S, -T, -1), D))
    other = torch.rand(B, 1, T, S) < 0.5
    sight = Sight("content", lambda scores: relative_shift(scores, S), other_segment_B1TS=other)
    scores = RelativeScoring(attention, distances, sight)(query, key)
    assert attention(query, Seen(key, value, distances), sight).shape == (B, T, D)
    for b, h, i, j in [(0, 0, 0, 0), (1, 2, 4, 8), (1, 1, 0, 8), (0, 2, 3, 1)]:
        one = query[b, h, i]
        sinusoid = distance_sinusoids(torch.tensor([M + i - j]), D)
        distance = (attention.distance_projection(sinusoid)).view(H, K)[h]
        expected = (one + attention.content_bias[h]) @ key[b, h, j] + (one + attention.position_bias[h]) @ distance
        expected += (one + attention.segment_bias[h]) @ attention.segment_embedding[int(other[b, 0, i, j]), h]
        torch.testing.assert_close(scores[b, h, i, j], expected / K**0.5, atol=1e-5, rtol=0)


def test_queries_and_contents_use_the_same_projection() -> None:
    attention = build()
    x = torch.randn(B, T, D)
    torch.testing.assert_close(attention.queries(x), attention.contents(x)[0])
    _, key, value = attention.contents(x[:, 3:], x[:, :3])
    torch.testing.assert_close((key, value), attention.contents(x)[1:])


def test_both_streams_are_recorded() -> None:
    view, recorders = recording_view(build(segments=False))
    query, key, value = view.contents(torch.randn(B, T, D))
    seen = Seen(key, value, view.distances(distance_sinusoids(torch.arange(T, -T, -1), D)))
    mask = torch.ones(T, T, dtype=torch.bool).tril()
    view(query, seen, Sight("query", lambda scores: relative_shift(scores, T), mask))
    assert recorders[".content"].weights is None
    weights = recorders[".query"].weights
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T))
    assert (weights.triu(1) == 0).all()


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(UserError, match="cannot be split over 5 heads"):
        RelativeAttention(12, AttentionConfig(num_heads=5), False)
