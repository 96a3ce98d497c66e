"""What must hold for every XLNet: what a query knows, memories, cached steps, batches."""

import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.models.xlnet import XLNet
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.settings.xlnet import XLNetConfig

VOCABULARY, B, T = 31, 3, 7
STACK = StackConfig(
    3,
    attention=AttentionConfig(3, key_width=8, bias=False),
    feed_forward=FeedForwardConfig(29, "gelu"),
    norm_epsilon=1e-12,
)
CONFIG = XLNetConfig(VOCABULARY, 22, max_length=61, memory_length=13, stack=STACK)


def build(**changes) -> XLNet:
    torch.manual_seed(1)
    model = XLNet(replace(CONFIG, **changes)).eval()
    for name, parameter in model.named_parameters():
        if "norm" not in name:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.fixture(params=[{}, {"segments": True}, {"clamp_length": 5}], ids=["plain", "segments", "clamped"])
def model(request: pytest.FixtureRequest) -> XLNet:
    return build(**request.param)


def ids(*shape: int, seed: int = 2) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=25)
@given(order=st.permutations(range(T)), changed=st.integers(0, T - 1))
@torch.inference_mode()
def test_a_query_knows_nothing_of_its_token_and_of_later_ones(order: list[int], changed: int) -> None:
    model = TWO_STREAMS
    rank = torch.tensor(order).argsort()
    allowed = (rank < rank[:, None])[None]
    one, other = ids(1, T), ids(1, T)
    other[0, changed] = 3 + (one[0, changed] - 3 + 1) % (VOCABULARY - 3)
    before, after = (model(each, allowed, torch.eye(T)[None])[0] for each in (one, other))
    for place in range(T):
        if rank[changed] >= rank[place]:
            assert torch.equal(before[place], after[place])
        else:
            assert (before[place] - after[place]).abs().max() > 1e-4


TWO_STREAMS = build()


@torch.inference_mode()
def test_the_plain_order_is_a_permutation_like_others(model: XLNet) -> None:
    """Scoring from left to right is the order 1 .. T, each token predicted at its own place."""
    whole = ids(B, T + 1)
    allowed = torch.ones(T + 1, T + 1, dtype=torch.bool).tril(-1).expand(B, -1, -1)
    in_place = model(whole, allowed, torch.eye(T + 1).expand(B, -1, -1))
    torch.testing.assert_close(model.output(model.hidden(whole[:, :-1])), in_place[:, 1:], atol=1e-5, rtol=0)


@torch.inference_mode()
def test_predictions_of_some_places_are_those_of_all(model: XLNet) -> None:
    mask = torch.rand(B, 1, T, T, generator=torch.Generator().manual_seed(3)) < 0.6
    places = torch.tensor([[0, 3, 5], [1, 2, 6], [4, 5, 6]])
    mapping = torch.nn.functional.one_hot(places, T).float()
    eye = torch.eye(T, dtype=torch.bool)
    all_places = model.predict(ids(B, T), mask | eye, mask)
    some = model.predict(ids(B, T), mask | eye, mask, mapping_BPT=mapping)
    torch.testing.assert_close(some, all_places.gather(1, places[..., None].expand(-1, -1, 22)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("changes", [{}, {"clamp_length": 5}], ids=["plain", "clamped"])
@torch.inference_mode()
def test_a_text_in_segments_with_memories_is_the_text_in_one_piece(changes: dict) -> None:
    """True at any depth: under a causal mask the states of earlier tokens do not change when later ones come."""
    model = build(causal=True, **changes)
    text, cuts = ids(B, 17), [0, 3, 10, 17]
    whole = model(text)
    memories = None
    for first, last in itertools.pairwise(cuts):
        logits = model(text[:, first:last], memories=memories)
        torch.testing.assert_close(logits, whole[:, first:last], atol=1e-5, rtol=0)
        memories = model.remember(text[:, first:last], memories=memories)
    for pieced, at_once in zip(memories, model.remember(text), strict=True):
        torch.testing.assert_close(pieced, at_once, atol=1e-5, rtol=0)


@torch.inference_mode()
def test_the_query_stream_with_memories_is_that_of_the_text_in_one_piece(model: XLNet) -> None:
    text = ids(B, 17)
    memories = model.remember(text[:, :10])
    mask = torch.ones(7, 17, dtype=torch.bool).tril(10)[None, None]
    for causal in (True, False):
        pieced = model.predict(text[:, 10:], mask, mask, memories, causal=causal)
        torch.testing.assert_close(pieced, model.hidden(text)[:, 10:], atol=1e-5, rtol=0)


@torch.inference_mode()
def test_cached_and_uncached_logits_agree_at_every_position(model: XLNet) -> None:
    lengths = torch.tensor([5, 2, 4])
    prompts, target = ids(B, 5), ids(B, T, seed=4)
    state = model.new_state(B, 1, 5, T)
    state.insert([0, 1, 2], model.prefill(prompts, lengths), [0, 1, 2])
    steps = torch.stack([model.step(target[:, t], state) for t in range(T)], dim=1)
    for row, length in enumerate(lengths.tolist()):
        whole = torch.cat([prompts[row, :length], target[row]])[None]
        expected = model.output(model.hidden(whole))[0, length:]
        torch.testing.assert_close(steps[row], expected, atol=1e-5, rtol=0)


@torch.inference_mode()
def test_slots_are_reordered_selected_and_refilled(model: XLNet) -> None:
    prompts = ids(B, 5)
    prefilled = model.prefill(prompts, torch.tensor([5, 5, 5]))
    state = model.new_state(2, 2, 5, T)
    state.insert([0, 1], prefilled, [0, 1])
    history = ids(4, 3, seed=5)
    for t in range(3):
        model.step(history[:, t], state)
    state.reorder(torch.tensor([1, 1, 3, 2]))
    last = ids(4, seed=6)
    logits = model.step(last, state)
    texts = torch.cat([prompts[[0, 0, 1, 1]], history[[1, 1, 3, 2]], last[:, None]], dim=1)
    torch.testing.assert_close(logits, model.output(model.hidden(texts))[:, -1], atol=1e-5, rtol=0)
    state.select([1])
    state.insert([1], prefilled, [2])
    logits = model.step(last, state)
    texts = torch.cat([texts[2:], last[:2, None]], dim=1)
    torch.testing.assert_close(logits[:2], model.output(model.hidden(texts))[:, -1], atol=1e-5, rtol=0)
    fresh = torch.cat([prompts[[2, 2]], last[2:, None]], dim=1)
    torch.testing.assert_close(logits[2:], model.output(model.hidden(fresh))[:, -1], atol=1e-5, rtol=0)


@torch.inference_mode()
def test_steps_do_not_depend_on_the_batch_to_the_last_bit(model: XLNet) -> None:
    lengths = torch.tensor([5, 2, 4, 3, 1])
    prompts, target = ids(5, 5), ids(5, T, seed=4)

    def decode(rows: list[int]) -> torch.Tensor:
        longest = int(lengths[rows].max())
        state = model.new_state(len(rows), 1, longest, T)
        prefilled = model.prefill(prompts[rows, :longest], lengths[rows])
        state.insert(list(range(len(rows))), prefilled, list(range(len(rows))))
        return torch.stack([model.step(target[rows, t], state) for t in range(T)], dim=1)

    together = decode([0, 1, 2, 3, 4])
    for row in range(5):
        assert torch.equal(decode([row])[0], together[row])


@torch.inference_mode()
def test_documents_are_read_as_if_each_stood_alone(model: XLNet) -> None:
    first, second = ids(1, 4), ids(1, 6, seed=3)
    documents = torch.tensor([[1] * 4 + [2] * 6])
    together = model.hidden(torch.cat([first, second], dim=1), documents)
    torch.testing.assert_close(together[:, :4], model.hidden(first), atol=1e-5, rtol=0)
    torch.testing.assert_close(together[:, 4:], model.hidden(second), atol=1e-5, rtol=0)
