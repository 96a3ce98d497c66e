import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heedful.layers.recurrent import BidirectionalLayer, RecurrentLayer, reordered, reversal
from heedful.layers.recurrent_stacks import BidirectionalEncoder
from heedful.settings.recurrent import RecurrentStackConfig

LENGTHS = torch.tensor([7, 3, 1, 5])
B, S, D, W = 4, 7, 5, 11
CELLS = ["lstm", "gru"]


def values(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def test_reversal_turns_each_row_within_its_length() -> None:
    x = torch.arange(B * S).view(B, S, 1)
    turned = reordered(x, reversal(LENGTHS, S))
    for row, length in enumerate(LENGTHS.tolist()):
        assert turned[row, :length, 0].tolist() == x[row, :length, 0].flip(0).tolist()
        assert torch.equal(turned[row, length:], x[row, length:])
    assert torch.equal(reordered(turned, reversal(LENGTHS, S)), x)


@pytest.mark.parametrize("cell", CELLS)
def test_steps_give_the_outputs_of_whole_sequences(cell: str) -> None:
    torch.manual_seed(1)
    layer = RecurrentLayer(D, W, cell)
    x, state = values(B, S, D), 0.5 * values(B, layer.state_width)
    whole = layer(x, state)
    for position in range(S):
        output, state = layer.step(x[:, position], state)
        torch.testing.assert_close(output, whole[:, position], atol=1e-5, rtol=0)


@pytest.mark.parametrize("cell", CELLS)
def test_both_directions_are_those_of_packed_sequences(cell: str) -> None:
    """The same weights in torch's bidirectional layer, over packed sequences, in which there is no padding."""
    torch.manual_seed(1)
    layer = BidirectionalLayer(D, 2 * W, cell)
    kind = nn.LSTM if cell == "lstm" else nn.GRU
    packed_layer = kind(D, W, batch_first=True, bidirectional=True)
    weights = [*layer.forwards.recurrence.all_weights[0], *layer.backwards.recurrence.all_weights[0]]
    with torch.no_grad():
        for target, weight in zip([each for group in packed_layer.all_weights for each in group], weights, strict=True):
            target.copy_(weight)
    x = values(B, S, D)
    packed, _ = packed_layer(pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False))
    both = pad_packed_sequence(packed, batch_first=True)[0].chunk(2, dim=-1)
    expected = torch.cat([nn.functional.layer_norm(each, (W,)) for each in both], dim=-1)
    real = (torch.arange(S) < LENGTHS[:, None])[..., None]
    torch.testing.assert_close(layer(x, reversal(LENGTHS, S)) * real, expected * real, atol=1e-5, rtol=0)


@pytest.mark.parametrize("cell", CELLS)
def test_the_last_outputs_are_those_of_each_direction(cell: str) -> None:
    torch.manual_seed(1)
    encoder = BidirectionalEncoder(D, 2 * W, cell, RecurrentStackConfig(3)).eval()
    outputs, last = encoder(values(B, S, D), LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        assert torch.equal(last[row], torch.cat([outputs[row, length - 1, :W], outputs[row, 0, W:]]))


def test_an_lstm_begins_by_remembering_and_recurrences_by_turning() -> None:
    lstm, gru = RecurrentLayer(D, W, "lstm"), RecurrentLayer(D, W, "gru")
    _, recurrent, input_bias, recurrent_bias = lstm.recurrence.all_weights[0]
    assert (input_bias + recurrent_bias).view(4, W).tolist() == [[0.0] * W, [1.0] * W, [0.0] * W, [0.0] * W]
    assert not gru.recurrence.bias_ih_l0.any() and not gru.recurrence.bias_hh_l0.any()
    for gate in [*recurrent.split(W), *gru.recurrence.weight_hh_l0.split(W)]:
        torch.testing.assert_close(gate @ gate.T, torch.eye(W), atol=1e-5, rtol=0)
