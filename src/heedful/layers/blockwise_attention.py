"""Attention over many keys, one block at a time.

Kernels for matrix products cut a long sum into parts, and where they cut it depends on its whole length: over more keys
than a block has, the last bits of a row's result would depend on how many keys it is padded to. A block of which a row
sees no key adds zeros to that row's result, and does not change a bit of it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

# No kernel was seen to cut a sum of so few terms. On Intel's processors they do from 257 terms with AVX2, and from 385
# with AVX-512; on AMD's with AVX-512 from 193.
KEYS_PER_BLOCK = 192

# Torch has a separate kernel for products of fewer than 400 numbers: 16 keys times these columns are more.
FEWEST_COLUMNS = 32


def attend_in_step(
    query_NHQK: Tensor,
    key_NHSK: Tensor,
    value_NHSV: Tensor,
    mask_N1QS: Tensor,
    scale: float,
    bias_NHQS: Tensor | None = None,
) -> Tensor:
    """Attention in a step of decoding on a CPU, by torch's fused kernel.

    The mask is added to the scores, and so is the bias if there is one; every query must see at least one key.
    """
    key_width, value_width = key_NHSK.shape[-1], value_NHSV.shape[-1]
    if key_width != value_width:  # the kernel does not take this
        width = max(key_width, value_width)
        query_NHQK, key_NHSK = (F.pad(each, (0, width - key_width)) for each in (query_NHQK, key_NHSK))
        value_NHSV = F.pad(value_NHSV, (0, width - value_width))
    # Of the mask's type, which is that of the keys: a bias may be more exact than these.
    added = mask_N1QS if bias_NHQS is None else mask_N1QS + bias_NHQS.to(mask_N1QS.dtype)
    if key_NHSK.shape[2] > KEYS_PER_BLOCK:
        return _attend_in_blocks(query_NHQK, key_NHSK, value_NHSV, mask_N1QS, added, scale)[..., :value_width]
    output_NHQV = F.scaled_dot_product_attention(query_NHQK, key_NHSK, value_NHSV, added, scale=scale)
    return output_NHQV[..., :value_width]


def _attend_in_blocks(
    query_NHQK: Tensor, key_NHSK: Tensor, value_NHSV: Tensor, mask_N1QS: Tensor, added: Tensor, scale: float
) -> Tensor:
    """The same, with the blocks joined by their shares in the softmax; `added` is the mask, with the bias if any."""
    outputs, logarithms = [], []
    for start in range(0, key_NHSK.shape[2], KEYS_PER_BLOCK):
        block = slice(start, start + KEYS_PER_BLOCK)
        output_NHQV, logarithm_NHQ = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query_NHQK, key_NHSK[:, :, block], value_NHSV[:, :, block], attn_mask=added[..., block], scale=scale
        )
        outputs.append(output_NHQV)
        # The kernel gives 0 where a query sees no key of the block; the largest of its mask is -inf there, else 0.
        logarithms.append(logarithm_NHQ + mask_N1QS[..., block].amax(-1))
    stacked = torch.stack(logarithms)
    shares = (stacked - stacked.amax(0)).exp_()[..., None].unbind()
    # One by one: the order of a sum over the blocks must not depend on their number.
    mixed_NHQV, total_NHQ1 = outputs[0] * shares[0], shares[0]
    for output_NHQV, share_NHQ1 in zip(outputs[1:], shares[1:], strict=True):
        mixed_NHQV, total_NHQ1 = mixed_NHQV + output_NHQV * share_NHQ1, total_NHQ1 + share_NHQ1
    return (mixed_NHQV / total_NHQ1).to(query_NHQK.dtype)  # logarithms may be more exact


def mixed(weights_BHTS: Tensor, value_BHSV: Tensor, *, in_step: bool = False) -> Tensor:
    """The weighted sums of the values, the same to the last bit wherever a row lies in memory.

    On CPUs, the rounding of a product whose width is not a multiple of 8 depends on that, hence on what a sentence is
    batched with. In a decoding step the sums are made block by block of keys.
    """
    width, num_keys = value_BHSV.shape[-1], value_BHSV.shape[-2]
    missing = max(-width % 8, FEWEST_COLUMNS - width if in_step else 0)
    value_BHSV = F.pad(value_BHSV, (0, missing)) if missing else value_BHSV
    size = KEYS_PER_BLOCK if in_step else num_keys
    mixed_BHTV = weights_BHTS[..., :size] @ value_BHSV[..., :size, :]
    for start in range(size, num_keys, size):
        mixed_BHTV = mixed_BHTV + weights_BHTS[..., start : start + size] @ value_BHSV[..., start : start + size, :]
    return mixed_BHTV[..., :width] if missing else mixed_BHTV
