"""Beams that share the nodes of a tree attend to what they would attend to each with a history of its own."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from heedful.layers.multi_head_attention import SelfAttention
from heedful.layers.positions import SCHEMES
from heedful.layers.tree_cache import TreeCache
from heedful.settings.attention import AttentionConfig
from heedful.settings.position_scheme import PositionSizes

SENTENCES, BEAM, WIDTH, HEADS, STEPS = 3, 5, 28, 2, 13


def new_cache() -> TreeCache:
    return TreeCache((1, HEADS, WIDTH // HEADS, WIDTH // HEADS), SENTENCES, BEAM, torch.device("cpu"))


def new_layer(window: int | None, scheme: str) -> SelfAttention:
    torch.manual_seed(7)
    positions = SCHEMES[scheme](PositionSizes(WIDTH, WIDTH // HEADS, 64, HEADS, causal=True))
    for parameter in positions.parameters():
        torch.nn.init.normal_(parameter)
    return SelfAttention(WIDTH, AttentionConfig(HEADS), positions, window).eval()


def alone(layer: SelfAttention, history: list[Tensor]) -> Tensor:
    x_1TD = torch.stack(history)[None]
    return layer(x_1TD, causal=True)[0, -1]


@given(
    st.lists(
        st.lists(st.integers(0, BEAM - 1), min_size=SENTENCES * BEAM, max_size=SENTENCES * BEAM),
        min_size=STEPS - 1,
        max_size=STEPS - 1,
    ),
    st.sampled_from([None, 4]),
    st.integers(1, STEPS - 2),
    st.sampled_from(["rotary", "alibi", "relative_buckets"]),
)
@settings(max_examples=20)
@torch.no_grad()
def test_same_as_histories_of_their_own(
    parents: list[list[int]], window: int | None, restart: int, scheme: str
) -> None:
    layer, cache = new_layer(window, scheme), new_cache()
    histories: list[list[Tensor]] = [[] for _ in range(SENTENCES * BEAM)]
    generator = torch.Generator().manual_seed(11)
    for step in range(STEPS):
        x_RD = torch.randn(SENTENCES * BEAM, WIDTH, generator=generator)
        histories = [[*history, x] for history, x in zip(histories, x_RD, strict=True)]
        found = layer.step(x_RD, cache.layers(SENTENCES)[0])[: SENTENCES * BEAM]
        cache.end_step(SENTENCES)
        expected = torch.stack([alone(layer, history) for history in histories])
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
        if step < len(parents):
            rows = [row // BEAM * BEAM + parent for row, parent in enumerate(parents[step])]
            cache.reorder(torch.tensor(rows))
            histories = [histories[row] for row in rows]
        if step == restart:  # the middle one starts anew, and the last goes on in the place of the first
            cache.copy_sentences(torch.tensor([0]), torch.tensor([SENTENCES - 1]))
            cache.begin(torch.tensor([1]))
            histories[:BEAM] = histories[-BEAM:]
            histories[BEAM : 2 * BEAM] = [[] for _ in range(BEAM)]


def test_places_are_taken_again() -> None:
    """Where all rows go on from one, a step takes one place more; those of the other rows are given up."""
    cache = new_cache()
    for step in range(STEPS):
        cache.layers(SENTENCES)
        cache.end_step(SENTENCES)
        assert cache.used == step + BEAM
        cache.reorder(torch.arange(SENTENCES * BEAM) // BEAM * BEAM)


def test_rows_that_never_meet_have_room() -> None:
    cache = new_cache()
    for step in range(STEPS):
        cache.layers(SENTENCES)
        cache.end_step(SENTENCES)
        assert cache.used == (step + 1) * BEAM


def test_a_place_depends_on_its_own_sentence() -> None:
    """What the others do must not matter, or the sums of attention would come out in another order."""
    generator = torch.Generator().manual_seed(3)
    first, second = new_cache(), new_cache()
    for _ in range(STEPS):
        nodes = [cache.layers(SENTENCES)[0].nodes_R for cache in (first, second)]
        assert torch.equal(nodes[0][:BEAM], nodes[1][:BEAM])
        own = torch.randint(BEAM, (BEAM,), generator=generator)
        for cache in (first, second):
            cache.end_step(SENTENCES)
            others = torch.randint(BEAM, (SENTENCES - 1, BEAM), generator=generator)
            others += torch.arange(1, SENTENCES)[:, None] * BEAM
            cache.reorder(torch.cat([own, others.flatten()]))
