"""Linear layers with weights of 8 bits, for decoding: less to read, and products that take about half as long.

Every output has a scale of its own for its weights, and every row one for its values, so that the result of a row
does not depend on the rows beside it. Sums are those of whole numbers, and exact.
"""

from __future__ import annotations

import warnings
from typing import Any, cast

import torch
from torch import Tensor, nn

from heedful.errors import UserError

# Processors without instructions of their own for this add two products in 16 bits: 2 x 255 x 63 is what fits.
LARGEST_WEIGHT = 63
# Values of a row, divided by the largest of them, as numbers from 1 to 255.
VALUE_SCALE, ZERO_POINT = 1 / 127, 128
# The outputs of so many rows are computed at a time that they stay in a cache: the kernel has room for whole numbers
# besides, which the operating system would have to clear page by page if it were large.
ELEMENTS_PER_PIECE, FEWEST_ROWS = 2**19, 32
TINIEST = torch.finfo(torch.float32).tiny
# Rounding a row and scaling its result back takes inputs + outputs, the product inputs x outputs: with a smaller ratio
# of the two, fp32 is faster.
SMALLEST_RATIO = 120


class Int8Linear(nn.Module):
    """The linear layer that it is made from, with rounded weights; it cannot be trained."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.bias = None if linear.bias is None else linear.bias.detach()
        # A row of zeros has the scale 1.
        largest_N = linear.weight.detach().abs().amax(1)
        self.scales_N = torch.where(largest_N > 0, largest_N / LARGEST_WEIGHT, 1.0)
        weights_NK = linear.weight.detach().div(self.scales_N[:, None]).round().to(torch.int8)
        self.packed = _packed(weights_NK, self.scales_N)

    def __deepcopy__(self, memo: dict[int, Any]) -> Int8Linear:
        """Itself: nothing in it ever changes, and views of a model share what they can."""
        return self

    @property
    def weight(self) -> Tensor:
        """The weights N K that the layer computes with, as they are after rounding."""
        return cast(Tensor, _unpacked(self.packed)).dequantize()

    def forward(self, x: Tensor) -> Tensor:
        """x W + b, for x of any shape whose last axis is the layer's input."""
        shape, x_RK = (*x.shape[:-1], self.out_features), x.reshape(-1, self.in_features)
        largest_R1 = x_RK.abs().amax(1, keepdim=True).clamp_min_(TINIEST)
        x_RK = x_RK / largest_R1
        y_RN = x_RK.new_empty(len(x_RK), self.out_features)
        rows = max(FEWEST_ROWS, ELEMENTS_PER_PIECE // self.out_features)
        for x, largest, y in zip(x_RK.split(rows), largest_R1.split(rows), y_RN.split(rows), strict=True):
            product = _product(x, self.packed)
            if self.bias is None:
                torch.mul(product, largest, out=y)
            else:
                torch.addcmul(self.bias, product, largest, out=y)
        return y_RN.view(*shape)


def with_int8_weights(model: nn.Module) -> None:
    """Replace the linear layers of a model, in place, except those that are too small to gain by it."""
    if next(model.parameters()).device.type != "cpu":
        raise UserError("int8 is for processors: choose --device cpu, or leave the precision at fp32")
    if not {"x86", "fbgemm"} & set(torch.backends.quantized.supported_engines):
        raise UserError("this build of torch has no int8 products for this processor: leave the precision at fp32")
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Linear and _gains(child):
                setattr(module, name, Int8Linear(child))


def _gains(linear: nn.Linear) -> bool:
    inputs, outputs = linear.in_features, linear.out_features
    return inputs * outputs >= SMALLEST_RATIO * (inputs + outputs)


def _packed(weights_NK: Tensor, scales_N: Tensor) -> Any:
    """The weights in the order in which the kernel reads them."""
    zeros_N = torch.zeros(len(scales_N), dtype=torch.long)
    with warnings.catch_warnings():
        # Tensors that know their scale are to go from torch one day; the kernel has no other way in so far.
        warnings.simplefilter("ignore")
        quantized = torch._make_per_channel_quantized_tensor(weights_NK, scales_N.double(), zeros_N, 0)
        return torch.ops.quantized.linear_prepack(quantized, None)


def _unpacked(packed: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ops.quantized.linear_unpack(packed)[0]


def _product(x_RK: Tensor, packed: Any) -> Tensor:
    """Values from -1 to 1, rounded to 8 bits, times the weights."""
    kernel = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32
    return cast(Tensor, kernel(x_RK, VALUE_SCALE, ZERO_POINT, packed))
