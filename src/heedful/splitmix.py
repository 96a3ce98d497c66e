"""SplitMix64 (Steele, Lea and Flood, 2014): random bits that depend on a key alone, not on what was drawn before."""

import numpy as np
from numpy.typing import NDArray

# 2 ** 64 over the golden ratio, made odd: multiples of it fall evenly over all 64-bit numbers.
GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The mixing function of SplitMix64, after which every bit depends on all bits."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
