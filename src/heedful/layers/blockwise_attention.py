"""Attention over many keys, a block of them at a time.

Kernels for matrix products cut a long sum into parts, and where they cut it depends on its whole length: over more keys
than a block has, what a row gets would depend in its last bits on how many keys it is padded to. A block of keys none
of which a row sees adds zeros to what that row has, and changes no bit of it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

# No kernel was seen to cut a sum of so few parts: with AVX2 they do from 257 up, with AVX-512 from 385 up.
KEYS_PER_BLOCK = 256


def attend_in_blocks(
    query_NHQK: Tensor, key_NHSK: Tensor, value_NHSV: Tensor, mask_N1QS: Tensor, scale: float
) -> Tensor:
    """What torch's fused kernel for CPUs gives, with the blocks joined by their shares in the softmax.

    The mask is added to the scores, and every query must see some key.
    """
    outputs, logarithms = [], []
    for start in range(0, key_NHSK.shape[2], KEYS_PER_BLOCK):
        block = slice(start, start + KEYS_PER_BLOCK)
        output_NHQV, logarithm_NHQ = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query_NHQK, key_NHSK[:, :, block], value_NHSV[:, :, block], attn_mask=mask_N1QS[..., block], scale=scale
        )
        outputs.append(output_NHQV)
        # The kernel gives 0 where a query sees no key of the block; the largest of its mask is -inf there, else 0.
        logarithms.append(logarithm_NHQ + mask_N1QS[..., block].amax(-1))
    stacked = torch.stack(logarithms)
    shares = (stacked - stacked.amax(0)).exp_()[..., None].unbind()
    # One after the other: the order of a sum over the blocks must not depend on their number.
    mixed_NHQV, total_NHQ1 = outputs[0] * shares[0], shares[0]
    for output_NHQV, share_NHQ1 in zip(outputs[1:], shares[1:], strict=True):
        mixed_NHQV, total_NHQ1 = mixed_NHQV + output_NHQV * share_NHQ1, total_NHQ1 + share_NHQ1
    return mixed_NHQV / total_NHQ1


def mixed(weights_BHTS: Tensor, value_BHSV: Tensor, keys_per_block: int | None = None) -> Tensor:
    """The weighted sums of the values, the same to the last bit wherever a row lies in memory.

    A product whose width is no multiple of 8 is rounded by that on CPUs, hence by what a sentence is batched with.
    """
    width, num_keys = value_BHSV.shape[-1], value_BHSV.shape[-2]
    missing = -width % 8
    value_BHSV = F.pad(value_BHSV, (0, missing)) if missing else value_BHSV
    size = keys_per_block or num_keys
    mixed_BHTV = weights_BHTS[..., :size] @ value_BHSV[..., :size, :]
    for start in range(size, num_keys, size):
        mixed_BHTV = mixed_BHTV + weights_BHTS[..., start : start + size] @ value_BHSV[..., start : start + size, :]
    return mixed_BHTV[..., :width] if missing else mixed_BHTV
