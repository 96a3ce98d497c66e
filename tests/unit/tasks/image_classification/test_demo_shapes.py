import numpy as np

from heedful.tasks.image_classification.demo_shapes import SHAPES, draw_shapes


def test_images_are_a_function_of_the_seed() -> None:
    images, classes = draw_shapes(23, 1, 19)
    assert images.shape == (23, 19, 19, 3) and images.dtype == np.uint8
    again, same = draw_shapes(23, 1, 19)
    np.testing.assert_array_equal(images, again)
    np.testing.assert_array_equal(classes, same)
    assert (draw_shapes(23, 2, 19)[0] != images).any()
    assert set(draw_shapes(100, 3, 7)[1]) == set(range(len(SHAPES)))


def test_shapes_have_the_areas_that_geometry_gives() -> None:
    places = np.linspace(-1, 1, 1001)
    x, y = np.meshgrid(places, places)
    star = 5 * 0.42 * np.sin(np.pi / 5)
    areas = {
        "circle": np.pi * 0.85**2,
        "cross": 4 * 0.9 * 0.27 * 2 - (2 * 0.27) ** 2,
        "ring": np.pi * (0.9**2 - 0.5**2),
        "square": 2.0,
        "star": star,
        "triangle": 3 * np.sqrt(3) / 4,
    }
    for name, inside in SHAPES.items():
        assert abs(inside(x, y).mean() * 4 - areas[name]) < 0.02, name
    assert SHAPES["triangle"](np.array(0.0), np.array(-0.98)) and not SHAPES["triangle"](np.array(0.0), np.array(0.6))
