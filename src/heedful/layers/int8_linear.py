"""Linear layers with 8-bit weights, for decoding: less to read, and products that take about half as long.

Every output has its own scale for its weights, and every row has one for its values, so that the result of a row does
not depend on the rows beside it. Sums are of whole numbers, and exact.
"""

from __future__ import annotations

import warnings
from typing import Any, cast

import torch
from torch import Tensor, nn

from heedful.errors import UserError

# Processors without special instructions for this add two products in 16 bits: 2 x 255 x 63 still fits.
LARGEST_WEIGHT = 63
# Values become whole numbers from -127 to 127; the kernels read them as numbers from 1 to 255.
LARGEST_VALUE, ZERO_POINT = 127, 128
# Numbers near 1.5 x 2^23 have no bits after the point: a value added to this is rounded, and the last byte of the sum
# is the rounded value plus 128.
ROUNDING = 1.5 * 2**23 + ZERO_POINT
# One kernel is faster for fewer rows than this, another for this many or more; their results are the same.
MANY_ROWS = 128
# Rounding a row and scaling its result back costs inputs + outputs, the product costs inputs x outputs: where the
# product costs less than this many times as much, fp32 is faster.
SMALLEST_RATIO = 120


class Int8Linear(nn.Module):
    """A given linear layer with rounded weights; it cannot be trained."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.bias = None if linear.bias is None else linear.bias.detach()
        # A row of zeros has the scale 1.
        largest_N = linear.weight.detach().abs().amax(1)
        scales_N = torch.where(largest_N > 0, largest_N / LARGEST_WEIGHT, 1.0)
        weights_NK = linear.weight.detach().div(scales_N[:, None]).round().to(torch.int8)
        # The scales of the products, in which values are whole numbers too.
        self.scales_N = scales_N / LARGEST_VALUE
        self.packed_for_few, self.packed_for_many = _packed(weights_NK, self.scales_N)
        self.zeros_N = torch.zeros(self.out_features, dtype=torch.int32)
        self.rounding_K = torch.full((self.in_features,), ROUNDING)
        self.largest_value = torch.tensor(float(LARGEST_VALUE))

    def __deepcopy__(self, memo: dict[int, Any]) -> Int8Linear:
        """Itself: nothing in it ever changes, and views of a model share what they can."""
        return self

    @property
    def weight(self) -> Tensor:
        """The weights N K that the layer computes with, after rounding."""
        return cast(Tensor, _unpacked(self.packed_for_few)).dequantize() * LARGEST_VALUE

    def forward(self, x: Tensor) -> Tensor:
        """x W + b, for x of any shape whose last axis is the layer's input."""
        x_RK = x.reshape(-1, self.in_features)
        largest_of, product = _largest_of_many, self._product_of_many
        if x_RK.shape[0] < MANY_ROWS:
            largest_of, product = _largest_of_few, self._product_of_few
        largest_R1 = largest_of(x_RK)
        # What rows of zeros become does not matter: it is multiplied by zero.
        rounded_RK = torch.addcmul(self.rounding_K, x_RK, torch.div(self.largest_value, largest_R1))
        y_RN = product(rounded_RK)
        if self.bias is None:
            y_RN.mul_(largest_R1)
        else:
            torch.addcmul(self.bias, y_RN, largest_R1, out=y_RN)
        return y_RN.view(*x.shape[:-1], self.out_features)

    # Both call the operator directly: torch's dispatch inspects the arguments, which takes as long as a small product.

    def _product_of_few(self, rounded_RK: Tensor) -> Tensor:
        product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default._op
        return cast(Tensor, product(rounded_RK.sub_(self.rounding_K), 1.0, ZERO_POINT, self.packed_for_few))

    def _product_of_many(self, rounded_RK: Tensor) -> Tensor:
        product = torch.ops.onednn.qlinear_pointwise.default._op
        bytes_RK = rounded_RK.view(torch.int32).to(torch.uint8)
        weights = (self.packed_for_many, self.scales_N, self.zeros_N)
        return cast(Tensor, product(bytes_RK, 1.0, ZERO_POINT, *weights, None, 1.0, 0, torch.float32, "none", [], ""))


def _largest_of_few(x_RK: Tensor) -> Tensor:
    """The largest amount in each row, by the fewest operations."""
    return x_RK.abs().amax(1, keepdim=True)


def _largest_of_many(x_RK: Tensor) -> Tensor:
    """The same, with the fewest writes."""
    return torch.maximum(x_RK.amax(1, keepdim=True), x_RK.amin(1, keepdim=True).neg_())


def with_int8_weights(model: nn.Module) -> None:
    """Replace the linear layers of a model, in place, except those that are too small to gain from it."""
    if next(model.parameters()).device.type != "cpu":
        raise UserError("int8 is for processors: choose --device cpu, or leave the precision at fp32")
    engines = {"x86", "fbgemm"} & set(torch.backends.quantized.supported_engines)
    if not engines or not torch.backends.mkldnn.is_available():
        raise UserError("this build of torch has no int8 products for this processor: leave the precision at fp32")
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Linear and _gains(child):
                setattr(module, name, Int8Linear(child))


def _gains(linear: nn.Linear) -> bool:
    inputs, outputs = linear.in_features, linear.out_features
    return inputs * outputs >= SMALLEST_RATIO * (inputs + outputs)


def _packed(weights_NK: Tensor, scales_N: Tensor) -> tuple[Any, Tensor]:
    """The weights in the orders in which the two kernels read them."""
    zeros_N = torch.zeros(len(scales_N), dtype=torch.long)
    with warnings.catch_warnings():
        # Torch will drop tensors that carry their scale one day; so far the kernel has no other way in.
        warnings.simplefilter("ignore")
        quantized = torch._make_per_channel_quantized_tensor(weights_NK, scales_N.double(), zeros_N, 0)
        few = torch.ops.quantized.linear_prepack(quantized, None)
    return few, cast(Tensor, torch.ops.onednn.qlinear_prepack(weights_NK, None))


def _unpacked(packed: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ops.quantized.linear_unpack(packed)[0]
