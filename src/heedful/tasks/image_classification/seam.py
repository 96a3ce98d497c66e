"""What a classifier of images requires of whatever computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class ImageComputation(Protocol):
    """Computes what images show."""

    def probabilities(self, images: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.float32]]:
        """The probabilities of all classes, image by image; images are bytes C H W, all of one size.

        A result that is not finite is a UserError. Images are drawn only shortly before they are computed.
        """


def image_computation(network: Any) -> ImageComputation:
    """What computes with a model."""
    from heedful.tasks.image_classification.with_torch import TorchImages

    return TorchImages(network)
