"""Images of simple shapes, drawn on the spot: each of one class, at a random place, of random size and colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Coordinates = NDArray[np.float64]
Drawing = Callable[[Coordinates, Coordinates], NDArray[np.bool_]]


def _polygon(corners: int, inner: float, turn: float = 0.0) -> Drawing:
    """A star with this many corners; it is a polygon if the inner radius is the distance to the middle of an edge."""
    step = np.pi / corners

    def inside(x: Coordinates, y: Coordinates) -> NDArray[np.bool_]:
        angle = np.abs((np.arctan2(x, -y) - turn + step) % (2 * step) - step)  # from the nearest corner
        # The edge from the corner (1, angle 0) to the inner corner (inner, angle step), in polar coordinates.
        edge = (
            inner * np.sin(step) / (np.sin(angle) * (1 - inner * np.cos(step)) + np.cos(angle) * inner * np.sin(step))
        )
        return np.hypot(x, y) <= edge

    return inside


# What is inside a shape of radius 1 around the origin; y grows downwards.
SHAPES: dict[str, Drawing] = {
    "circle": lambda x, y: np.hypot(x, y) <= 0.85,
    "cross": lambda x, y: (np.minimum(abs(x), abs(y)) <= 0.27) & (np.maximum(abs(x), abs(y)) <= 0.9),
    "ring": lambda x, y: abs(np.hypot(x, y) - 0.7) <= 0.2,
    "square": _polygon(4, np.cos(np.pi / 4), np.pi / 4),
    "star": _polygon(5, 0.42),
    "triangle": _polygon(3, 0.5),
}


def draw_shapes(count: int, seed: int, size: int = 32) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """`count` images, N H W 3, and the number of each one's class in the order of SHAPES."""
    random = np.random.Generator(np.random.PCG64(seed))
    classes = random.integers(len(SHAPES), size=count)
    names = list(SHAPES)
    return np.stack([_draw(names[number], random, size) for number in classes]), classes


def _draw(name: str, random: Any, size: int) -> NDArray[np.uint8]:
    """A shape, slightly rotated, on a background of another brightness, with noise all over."""
    radius = random.uniform(0.3, 0.45) * size
    centre = random.uniform(radius, size - radius, 2)
    turn = random.uniform(-0.2, 0.2)
    # Four points per pixel, whose mean makes the edges smooth.
    places = (np.arange(2 * size) + 0.5) / 2
    x, y = (places[None] - centre[0]) / radius, (places[:, None] - centre[1]) / radius
    turned = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    cover = SHAPES[name](*turned).reshape(size, 2, size, 2).mean((1, 3))[:, :, None]
    ground = random.uniform(0, 110, 3)
    colours = [ground, ground + random.uniform(70, 145, 3)]
    if random.random() < 0.5:
        colours.reverse()
    pixels = colours[0] * (1 - cover) + colours[1] * cover + random.normal(0, 12, (size, size, 3))
    return pixels.clip(0, 255).astype(np.uint8)
