"""A recurrent model of next tokens, which Transformers are compared with: embedding, LSTM or GRU layers, output."""

from __future__ import annotations

from torch import Tensor, nn

from heedful.layers.recurrent import RecurrentLayer
from heedful.settings.recurrent import CellName


class RecurrentReader(nn.Module):
    """Token ids in, logits of the token that follows each out; layers after the first are residual."""

    def __init__(self, vocabulary: int, width: int, layers: int, cell: CellName) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(RecurrentLayer(width, width, cell) for _ in range(layers))
        self.output = nn.Linear(width, vocabulary)

    def hidden(self, x_BTD: Tensor) -> Tensor:
        """The last layer's output, from embeddings."""
        for number, layer in enumerate(self.layers):
            x_BTD = layer(x_BTD) if number == 0 else x_BTD + layer(x_BTD)
        return x_BTD

    def forward(self, ids_BT: Tensor) -> Tensor:
        """The logits B T V."""
        return self.output(self.hidden(self.embedding(ids_BT)))


def width_for(parameters: int, vocabulary: int, layers: int, cell: CellName) -> int:
    """The width for which a recurrent reader comes closest to a number of parameters."""
    gates = 4 if cell == "lstm" else 3

    def count(width: int) -> int:
        layer = 2 * gates * width * width + 2 * gates * width + 2 * width
        return layers * layer + 2 * vocabulary * width + vocabulary

    return min(range(4, 1024), key=lambda width: abs(count(width) - parameters))
