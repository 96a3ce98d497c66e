"""The recurrent encoder and decoder, with attention between them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from heedful.layers.dropout import Dropout
from heedful.layers.global_attention import GlobalAttention
from heedful.layers.recurrent import BidirectionalLayer, RecurrentLayer, reversal
from heedful.settings.recurrent import CellName, GlobalScoring, RecurrentStackConfig


class BidirectionalEncoder(nn.Module):
    """Layers that read in both directions."""

    def __init__(self, input_width: int, width: int, cell: CellName, config: RecurrentStackConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            BidirectionalLayer(width if number else input_width, width, cell) for number in range(config.num_layers)
        )
        self.dropout = Dropout(config.dropout)

    def forward(self, x_BSD: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs B S W, and B W: the last output in each direction."""
        order = reversal(lengths_B, x_BSD.shape[1])
        x_BSW = self.dropout(self.layers[0](x_BSD, order))
        for layer in self.layers[1:]:
            x_BSW = x_BSW + self.dropout(layer(x_BSW, order))
        forwards, backwards = x_BSW.chunk(2, dim=-1)
        last = forwards[torch.arange(len(lengths_B), device=lengths_B.device), lengths_B - 1]
        return x_BSW, torch.cat([last, backwards[:, 0]], dim=-1)


class AttentiveDecoder(nn.Module):
    """Layers that read the target; the first attends to the source for all the others and for the output.

    No context enters the first layer's recurrence. In Bahdanau et al.'s decoder it does, which makes every position
    wait for the attention of the one before; here the kernels take whole sequences, in training one call per layer.
    From the second layer on, the contexts enter the recurrence (as in Wu et al., 2016); with one layer this is Luong et
    al.'s global attention without input feeding.
    """

    def __init__(
        self, output_width: int, width: int, cell: CellName, scoring: GlobalScoring, config: RecurrentStackConfig
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            RecurrentLayer(2 * width if number else output_width, width, cell) for number in range(config.num_layers)
        )
        self.cross_attention = GlobalAttention(width, scoring)
        self.combination = nn.Linear(2 * width, output_width)
        self.dropout = Dropout(config.dropout)
        self.state_widths = [layer.state_width for layer in self._recurrent_layers]

    @property
    def _recurrent_layers(self) -> list[RecurrentLayer]:
        return [layer for layer in self.layers if isinstance(layer, RecurrentLayer)]

    def forward(self, x_BTD: Tensor, states_BZ: Tensor, attend: Callable[[Tensor], Tensor]) -> Tensor:
        """What the output layer reads, for whole sequences; the layers start from `states_BZ`."""
        states = states_BZ.split(self.state_widths, dim=-1)
        return self._transform(x_BTD, lambda number, x: self.layers[number](x, states[number]), attend)

    def step(self, x_RD: Tensor, states_RZ: Tensor, attend: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        """What the output layer reads after one more input per row, and the states of all layers."""
        states = list(states_RZ.split(self.state_widths, dim=-1))

        def run(number: int, x_RD: Tensor) -> Tensor:
            output_RW, states[number] = self._recurrent_layers[number].step(x_RD, states[number])
            return output_RW

        output_RD = self._transform(x_RD, run, attend)
        return output_RD, torch.cat(states, dim=-1)

    def _transform(self, x: Tensor, run: Callable[[int, Tensor], Tensor], attend: Callable[[Tensor], Tensor]) -> Tensor:
        x = self.dropout(run(0, x))
        context = attend(x)
        for number in range(1, len(self.layers)):
            x = x + self.dropout(run(number, torch.cat([x, context], dim=-1)))
        return self.dropout(torch.tanh(self.combination(torch.cat([context, x], dim=-1))))
