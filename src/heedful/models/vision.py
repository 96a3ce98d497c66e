"""Vision Transformers (Dosovitskiy et al., 2021): the tokens are patches of an image, or of a video."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from heedful.layers.attention import Attend
from heedful.layers.blocks import final_norm, initialise
from heedful.layers.convolutions import GridNeighbourhood
from heedful.layers.dropout import Dropout
from heedful.layers.grid_positions import GridPositions
from heedful.layers.patches import PatchEmbedding
from heedful.layers.positions import PositionScheme
from heedful.layers.stacks import quieten, self_stack
from heedful.settings.patch_grid import patch_grid
from heedful.settings.position_scheme import PositionSizes
from heedful.settings.vision import PixelConfig, VisionConfig


def normalise(pixels: Tensor, config: PixelConfig) -> Tensor:
    """Bytes B C ... as numbers centred on zero."""
    shape = (-1, *[1] * (pixels.dim() - 2))
    mean, deviation = (torch.tensor(each, device=pixels.device) for each in (config.mean, config.deviation))
    return (pixels.float() - 255 * mean.view(shape)) / (255 * deviation.view(shape))


class ClassToken(nn.Module):
    """An extra token before all patches, with its own position, which does not depend on the grid."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.randn(width) * 0.02)
        self.position = nn.Parameter(torch.randn(width) * 0.02)

    def forward(self, x_BPD: Tensor) -> Tensor:
        """B P D -> B 1+P D."""
        first_B1D = (self.vector + self.position).expand(len(x_BPD), 1, -1)
        return torch.cat([first_B1D, x_BPD], dim=1)


class Vision(nn.Module):
    """Pixels in, logits of the classes out."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.config = config
        width, stack = config.width, config.stack
        self.patches = PatchEmbedding(config.patch_size, config.channels, width, config.window(config.grid))
        self.positions = GridPositions(config.grid, width)
        axes = len(config.patch_size)
        self.neighbourhood = GridNeighbourhood(width, config.convolution, axes) if config.convolution else None
        self.class_token = ClassToken(width) if config.pooling == "class_token" else nn.Identity()
        self.dropout = Dropout(stack.dropout)
        scheme = PositionScheme(PositionSizes(width, width, config.length))  # the blocks themselves use no positions
        self.blocks = self_stack(width, stack, scheme)
        self.norm = final_norm(width, stack)
        self.output = nn.Linear(width, config.num_classes) if config.num_classes else nn.Identity()
        self.apply(initialise)
        if stack.norm == "pre":
            quieten(self.blocks)

    @property
    def head_modules(self) -> tuple[nn.Module, ...]:
        """The head, which tells classes apart."""
        return (self.output,)

    def attention_functions(self) -> dict[str, Sequence[Attend]]:
        """The attention function that each layer holds, by the kind of attention."""
        return {"self": [block.attention.attend for block in self.blocks]}

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.positions.table.device

    def tokens(self, pixels: Tensor) -> Tensor:
        """The last block's output B T D; the class token, if there is one, comes first.

        Images may differ in size from those of the training: the positions are interpolated.
        """
        grid = patch_grid(pixels.shape[2:], self.config.patch_size)
        x_BTD = self.patches(pixels, self.config.window(grid)) + self.positions(grid)
        if self.neighbourhood is not None:
            x_BTD = self.neighbourhood(x_BTD, grid, self.config.finer(grid))
        x_BTD = self.dropout(self.class_token(x_BTD))
        return self.norm(self.blocks(x_BTD))

    def hidden(self, pixels: Tensor) -> Tensor:
        """What the head is applied to, B D: the class token, or the mean of all patches."""
        x_BTD = self.tokens(pixels)
        return x_BTD[:, 0] if self.config.pooling == "class_token" else x_BTD.mean(1)

    def forward(self, pixels: Tensor) -> Tensor:
        """The logits B V of the classes of normalised images B C H W, or videos B C F H W."""
        return self.output(self.hidden(pixels))
