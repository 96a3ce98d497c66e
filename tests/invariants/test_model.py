"""Two ways to the same result, for every position scheme, both kinds of norm, and recurrent models."""

import pytest
import torch

from heedful.inspection.attention.recording import RecordingAttend, recording_view
from heedful.layers.attention import AttentionLayer, attend_explicit
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.recurrent import Recurrent
from heedful.tasks.translation.task import TranslationModel

VOCABULARY = 31
LENGTHS = torch.tensor([11, 7, 2, 5, 3])
B, S, T = 5, 11, 13


def ids(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def source() -> torch.Tensor:
    return torch.where(torch.arange(S) < LENGTHS[:, None], ids(B, S), 0)


@torch.inference_mode()
def decode_with_cache(model: TranslationModel, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    rows = len(source)
    state = model.new_state(rows, 1, source.shape[1], target.shape[1])
    state.insert(list(range(rows)), model.prefill(source, LENGTHS[:rows]), list(range(rows)))
    return torch.stack([model.step(target[:, t], state) for t in range(target.shape[1])], dim=1)


@torch.inference_mode()
def test_cached_and_uncached_logits_agree_at_every_position(model: TranslationModel, source: torch.Tensor) -> None:
    target = ids(B, T, seed=2)
    torch.testing.assert_close(
        decode_with_cache(model, source, target), model(source, target, LENGTHS), atol=1e-5, rtol=0
    )


@torch.inference_mode()
def test_fused_and_explicit_attention_agree_in_the_whole_model(model: TranslationModel, source: torch.Tensor) -> None:
    target = ids(B, T, seed=2)
    fused = model(source, target, LENGTHS)
    for module in model.modules():
        if isinstance(module, AttentionLayer):
            module.attend = attend_explicit
    torch.testing.assert_close(fused, model(source, target, LENGTHS), atol=1e-5, rtol=0)


@torch.inference_mode()
def test_the_recorded_weights_are_those_of_the_fused_model(transformer: EncoderDecoder, source: torch.Tensor) -> None:
    recorders = check_recorded_weights(transformer, source)
    assert len(recorders) == 2 + 2 * 3
    cross = recorders["decoder.1.cross_attention"].weights
    assert cross is not None and cross.shape == (B, 3, T, S)
    torch.testing.assert_close(cross.sum(-1), torch.ones(B, 3, T))
    assert (cross[2, :, :, 2:] == 0).all()  # nothing is seen of the padding


@torch.inference_mode()
def test_the_recorded_weights_are_those_of_the_recurrent_model(recurrent: Recurrent, source: torch.Tensor) -> None:
    recorders = check_recorded_weights(recurrent, source)
    (cross,) = (each.weights for each in recorders.values())
    assert list(recorders) == ["decoder.cross_attention"]
    assert cross is not None and cross.shape == (B, 1, T, S)
    torch.testing.assert_close(cross.sum(-1), torch.ones(B, 1, T))
    assert (cross[2, :, :, 2:] == 0).all()


def check_recorded_weights(model: torch.nn.Module, source: torch.Tensor) -> dict[str, RecordingAttend]:
    """A recording view gives the logits of its model, on the same parameters."""
    target = ids(B, T, seed=2)
    view, recorders = recording_view(model)
    torch.testing.assert_close(view(source, target, LENGTHS), model(source, target, LENGTHS), atol=1e-5, rtol=0)
    assert {id(p) for p in view.parameters()} == {id(p) for p in model.parameters()}
    return recorders


@torch.inference_mode()
def test_a_slot_refilled_is_a_slot_fresh(model: TranslationModel, source: torch.Tensor) -> None:
    """Sentences enter and leave at different times, and every one gets the logits it gets alone."""
    prefilled = model.prefill(source, LENGTHS)
    target = ids(B, T, seed=3)
    alone = decode_with_cache(model, source, target)
    state = model.new_state(3, 1, S, T)
    state.insert([0, 1, 2], prefilled, [0, 1, 2])
    held, done = {0: 0, 1: 1, 2: 2}, dict.fromkeys(range(B), 0)

    def step() -> None:
        order = [held[slot] for slot in range(state.num_sentences)]
        logits = model.step(torch.stack([target[row, done[row]] for row in order]), state)
        for slot, row in enumerate(order):
            assert torch.equal(logits[slot], alone[row, done[row]]), (row, done[row])
            done[row] += 1

    for _ in range(4):
        step()
    state.insert([1], prefilled, [3])  # sentence 1 leaves, sentence 3 takes its slot
    held[1] = 3
    for _ in range(3):
        step()
    state.select([2, 1])  # sentence 0 leaves, the others move
    held = {0: 2, 1: 3}
    for _ in range(2):
        step()
    state.insert([2], prefilled, [4])
    held[2] = 4
    for _ in range(4):
        step()
    assert done == {0: 7, 1: 4, 2: 13, 3: 9, 4: 4}


@torch.inference_mode()
def test_reordered_beams_continue_from_their_parents(model: TranslationModel, source: torch.Tensor) -> None:
    beam = 3
    state = model.new_state(2, beam, S, T)
    state.insert([0, 1], model.prefill(source[:2], LENGTHS[:2]), [0, 1])
    history = ids(6, 4, seed=4)
    for t in range(4):
        model.step(history[:, t], state)
    parents = torch.tensor([1, 1, 0, 5, 4, 5])
    state.reorder(parents)
    last = ids(6, seed=5)
    logits = model.step(last, state)
    whole = torch.cat([history[parents], last[:, None]], dim=1)
    sentences = torch.tensor([0, 0, 0, 1, 1, 1])
    expected = model(source[sentences], whole, LENGTHS[sentences])[:, -1]
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)


@torch.inference_mode()
def test_future_tokens_cannot_change_earlier_logits(model: TranslationModel, source: torch.Tensor) -> None:
    target, other = ids(B, T, seed=6), ids(B, T, seed=7)
    changed = torch.where(torch.arange(T) < 6, target, other)
    before, after = model(source, target, LENGTHS), model(source, changed, LENGTHS)
    assert torch.equal(before[:, :6], after[:, :6])
    assert not torch.allclose(before[:, 6:], after[:, 6:])


@torch.inference_mode()
def test_padding_changes_nothing(model: TranslationModel, source: torch.Tensor) -> None:
    target = ids(B, T, seed=8)
    together = model(source, target, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = model(source[row : row + 1, :length], target[row : row + 1], LENGTHS[row : row + 1])
        torch.testing.assert_close(together[row : row + 1], alone, atol=1e-5, rtol=0)


@torch.inference_mode()
def test_results_do_not_depend_on_the_batch_to_the_last_bit(model: TranslationModel, source: torch.Tensor) -> None:
    target = ids(B, T, seed=9)
    together = decode_with_cache(model, source, target)
    for row in range(B):
        state = model.new_state(1, 1, S, T)
        state.insert([0], model.prefill(source[row : row + 1], LENGTHS[row : row + 1]), [0])
        for t in range(T):
            assert torch.equal(model.step(target[row : row + 1, t], state)[0], together[row, t])


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.inference_mode()
def test_an_encoder_without_positions_is_permutation_equivariant(norm: str, make_model) -> None:
    model = make_model("none", norm)
    source = ids(3, S)
    order = torch.randperm(S, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(
        model.encode(source, None)[:, order], model.encode(source[:, order], None), atol=1e-5, rtol=0
    )
    with_positions = make_model("sinusoidal", norm)
    assert not torch.allclose(
        with_positions.encode(source, None)[:, order], with_positions.encode(source[:, order], None), atol=1e-2
    )
