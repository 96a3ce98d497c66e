"""Recurrent layers, on torch's own kernels: in one direction, and in both."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.settings.recurrent import CellName


class RecurrentLayer(nn.Module):
    """One layer of LSTM (Hochreiter and Schmidhuber, 1997) or GRU cells (Cho et al., 2014).

    Its state is one tensor B Z: the cell's output W, and for an LSTM the memory W after it. The layer's output is
    normalised: cells begin with small outputs, which would shrink from layer to layer, and learning would be slow.
    """

    def __init__(self, input_width: int, width: int, cell: CellName) -> None:
        super().__init__()
        self.width = width
        self.state_width = 2 * width if cell == "lstm" else width
        kind = nn.LSTM if cell == "lstm" else nn.GRU
        self.recurrence = kind(input_width, width, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Glorot for inputs, orthogonal for the recurrence, gate by gate; an LSTM begins by remembering."""
        input_weight, recurrent_weight, input_bias, recurrent_bias = self.recurrence.all_weights[0]
        for gate in input_weight.split(self.width):
            nn.init.xavier_uniform_(gate)
        for gate in recurrent_weight.split(self.width):
            nn.init.orthogonal_(gate)
        nn.init.zeros_(input_bias)
        nn.init.zeros_(recurrent_bias)
        if isinstance(self.recurrence, nn.LSTM):  # the second gate forgets: open it (Jozefowicz et al., 2015)
            nn.init.ones_(input_bias[self.width : 2 * self.width])

    def forward(self, x_BTD: Tensor, state_BZ: Tensor | None = None) -> Tensor:
        """The outputs B T W of whole sequences, from a state or from zeros."""
        if state_BZ is None:
            return self.norm(self.recurrence(x_BTD)[0])
        parts = tuple(part.contiguous() for part in state_BZ[None].split(self.width, dim=-1))
        return self.norm(self.recurrence(x_BTD, parts if len(parts) > 1 else parts[0])[0])

    def step(self, x_RD: Tensor, state_RZ: Tensor) -> tuple[Tensor, Tensor]:
        """The output R W for one more input per row, and the state after it."""
        weights = self.recurrence.all_weights[0]
        if isinstance(self.recurrence, nn.GRU):
            state_RZ = torch.gru_cell(x_RD, state_RZ, *weights)
        else:
            state_RZ = torch.cat(torch.lstm_cell(x_RD, state_RZ.chunk(2, dim=-1), *weights), dim=-1)
        return self.norm(state_RZ[:, : self.width]), state_RZ


class BidirectionalLayer(nn.Module):
    """Two layers side by side, of half the width each; the second reads every sequence from its end."""

    def __init__(self, input_width: int, width: int, cell: CellName) -> None:
        super().__init__()
        self.forwards = RecurrentLayer(input_width, width // 2, cell)
        self.backwards = RecurrentLayer(input_width, width // 2, cell)

    def forward(self, x_BSD: Tensor, order: Tensor) -> Tensor:
        """The outputs B S W; `order` is made by `reversal`."""
        turned_BSD = reordered(self.backwards(reordered(x_BSD, order)), order)
        return torch.cat([self.forwards(x_BSD), turned_BSD], dim=-1)


def reversal(lengths_B: Tensor, length: int) -> Tensor:
    """The order of the positions of all rows, one row after the other, that reverses each row's own.

    Padding stays at the end of a row in both directions, so it is read after everything that counts, and changes
    nothing.
    """
    places_S = torch.arange(length, device=lengths_B.device)
    lengths_B1 = lengths_B[:, None]
    turned_BS = torch.where(places_S < lengths_B1, lengths_B1 - 1 - places_S, places_S)
    return (turned_BS + length * torch.arange(len(lengths_B), device=lengths_B.device)[:, None]).flatten()


def reordered(x_BSD: Tensor, order: Tensor) -> Tensor:
    """The positions of all rows in an order made by `reversal`."""
    return x_BSD.flatten(0, 1).index_select(0, order).view_as(x_BSD)
