from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heedful.errors import UserError
from heedful.tasks.image_classification.files import IN_SYSTEM_FOLDER, NO_IMAGE, ImageFolder
from heedful.tasks.image_classification.images import decode_image, has_colour, load_image, plain_image, read_image

RANDOM = np.random.Generator(np.random.PCG64(1))
COLOURS = RANDOM.integers(0, 256, (5, 7, 3), np.uint8)
GREYS = RANDOM.integers(0, 256, (5, 7), np.uint8)


def test_files_arrays_and_images_are_alike(tmp_path: Path) -> None:
    Image.fromarray(COLOURS).save(tmp_path / "a.png")
    for given in (tmp_path / "a.png", str(tmp_path / "a.png"), COLOURS, Image.fromarray(COLOURS)):
        np.testing.assert_array_equal(load_image(given, (5, 7), 3), COLOURS.transpose(2, 0, 1))
    np.testing.assert_array_equal(load_image(GREYS, (5, 7), 1), GREYS[None])
    np.testing.assert_array_equal(load_image(GREYS[:, :, None], (5, 7), 3), np.stack([GREYS] * 3))


def test_size_and_channels_are_as_asked() -> None:
    assert load_image(COLOURS, (11, 3), 1).shape == (1, 11, 3)
    assert load_image(GREYS, (3, 13), 3).shape == (3, 3, 13)
    constant = np.full((5, 7), 83, np.uint8)
    assert (load_image(constant, (11, 3), 3) == 83).all()


def test_sixteen_bits_are_scaled_to_eight(tmp_path: Path) -> None:
    Image.fromarray(GREYS.astype(np.uint16) * 257).save(tmp_path / "a.png")
    np.testing.assert_array_equal(load_image(tmp_path / "a.png", (5, 7), 1), GREYS[None])
    with read_image(tmp_path / "a.png") as image:
        assert not has_colour(image)


def test_what_is_transparent_is_white(tmp_path: Path) -> None:
    alpha = np.zeros((5, 7, 1), np.uint8)
    alpha[2, 3] = 255
    Image.fromarray(np.concatenate([COLOURS, alpha], 2)).save(tmp_path / "a.png")
    pixels = load_image(tmp_path / "a.png", (5, 7), 3)
    np.testing.assert_array_equal(pixels[:, 2, 3], COLOURS[2, 3])
    assert (pixels[:, 0] == 255).all()


def test_an_image_is_turned_as_its_camera_says(tmp_path: Path) -> None:
    image = Image.fromarray(COLOURS)
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn clockwise
    image.save(tmp_path / "a.png", exif=exif)
    pixels = load_image(tmp_path / "a.png", (7, 5), 3)
    np.testing.assert_array_equal(pixels.transpose(1, 2, 0), np.rot90(COLOURS, -1))


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no image at all")
    Image.fromarray(RANDOM.integers(0, 256, (50, 70, 3), np.uint8)).save(tmp_path / "b.png")
    (tmp_path / "b.png").write_bytes((tmp_path / "b.png").read_bytes()[:3000])
    for name in ("a.png", "b.png", "missing.png"):
        assert isinstance(decode_image(tmp_path / name, (5, 7), 3), str)
        with pytest.raises(UserError, match=f"{name} cannot be read as an image"):
            load_image(tmp_path / name, (5, 7), 3)
    with pytest.raises(UserError, match="expected uint8"):
        load_image(GREYS / 255, (5, 7), 1)


def test_one_rule_for_formats_and_pixels(tmp_path: Path) -> None:
    Image.new("RGB", (7, 5)).save(tmp_path / "a.eps")
    Image.new("1", (6000, 6000)).save(tmp_path / "large.png")
    Image.new("1", (20000, 10000)).save(tmp_path / "huge.png")
    for name, reason in (
        ("a.eps", "not an image of a format that is read"),
        ("large.png", "6000 x 6000 pixels, more than"),
        ("huge.png", "more than 33,554,432 pixels"),
    ):
        with pytest.raises(UserError, match=f"{name} cannot be read as an image: it .*{reason}"):
            load_image(tmp_path / name, (3, 3), 3)
    with Image.open(tmp_path / "a.eps") as opened, pytest.raises(UserError, match="its format is EPS"):
        load_image(opened, (3, 3), 3)
    with pytest.raises(UserError, match="5793 x 5793 pixels"):
        load_image(np.zeros((5793, 5793), np.uint8), (3, 3), 3)


def test_files_of_other_formats_are_no_images_of_a_folder(tmp_path: Path) -> None:
    hidden = [".net/e.png", "@eaDir/f.png", "cat/.ipynb_checkpoints/g.png"]
    for name in ("cat/a.png", "cat/b.eps", "dog/c.jpg", "dog/d.pdf", *hidden):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        Image.new("RGB", (3, 5)).save(path)
    found = ImageFolder.open(str(tmp_path))
    assert found.layout == ["cat/a.png", "dog/c.jpg"]
    assert found.labels == ("cat", "dog")
    found_out = {path.relative_to(tmp_path).as_posix(): reason for path, reason in found.strangers.items()}
    assert found_out == {
        **dict.fromkeys(["cat/b.eps", "dog/d.pdf"], NO_IMAGE),
        **dict.fromkeys(hidden, IN_SYSTEM_FOLDER),
    }


def test_an_open_image_stays_open(tmp_path: Path) -> None:
    frames = [Image.fromarray(COLOURS), Image.fromarray(255 - COLOURS)]
    frames[0].save(tmp_path / "two.gif", save_all=True, append_images=frames[1:])
    with Image.open(tmp_path / "two.gif") as given:
        assert plain_image(given, 3).size == (7, 5)
        given.seek(1)
        assert plain_image(given, 3).size == (7, 5)
