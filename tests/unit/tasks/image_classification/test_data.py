import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from heedful.errors import UserError
from heedful.prepared.folder import Expected
from heedful.prepared.held_out import held_out_images
from heedful.prepared.progress import ThrottledProgress
from heedful.tasks.image_classification.data import (
    ImageShape,
    pixel_statistics,
    prepare_images,
    typical_shape,
)
from heedful.tasks.image_classification.files import ImageFolder, open_images
from heedful.tasks.image_classification.images import plain_image

SHAPE = ImageShape((5, 7), 3)
QUIET = ThrottledProgress(None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.Generator(np.random.PCG64(1))
    for name in ("cat", "dog"):
        (tmp_path / "data" / name / "more").mkdir(parents=True)
        for number in range(11):
            pixels = random.integers(0, 256, (5 + number % 3, 7, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "data" / name / ("more" if number % 2 else "") / f"{number}.png")
    return tmp_path / "data"


def test_a_folder_becomes_arrays(folder: Path, tmp_path: Path) -> None:
    source = ImageFolder.open(str(folder))
    data = prepare_images(source, None, tmp_path, SHAPE)
    images = data.set
    assert data.labels == ("cat", "dog")
    assert images.images.shape == (22, 3, 5, 7)
    assert isinstance(images.images, np.memmap)
    assert images.classes.tolist() == [0] * 11 + [1] * 11
    assert len(images.valid) == 4  # a fifth of few images
    assert sorted([*images.train, *images.valid]) == list(range(22))
    first = next(iter(source))
    assert first.name.endswith("0.png")
    np.testing.assert_array_equal(images.images[0], np.asarray(Image.open(first.image)).transpose(2, 0, 1))
    again = prepare_images(source, None, tmp_path, SHAPE)
    assert again.key == data.key and again.facts == data.facts
    assert not data.messages


def test_what_cannot_be_read_is_listed_and_left_out(folder: Path, tmp_path: Path) -> None:
    broken = folder / "cat" / "broken.jpg"
    broken.write_bytes(b"\xff\xd8 not much of an image")
    cut = folder / "dog" / "cut.png"
    cut.write_bytes((folder / "dog" / "0.png").read_bytes()[:90])
    (folder / "dog" / "notes.txt").write_text("a text")
    source = ImageFolder.open(str(folder))
    assert typical_shape(source, QUIET, len(source)) == ImageShape((6, 7), 3)
    data = prepare_images(source, None, tmp_path, SHAPE)
    assert len(data.set.classes) == 22
    assert data.facts["left_out"] == {"no image": 1, "unreadable": 2}
    listed = [json.loads(line) for line in (tmp_path / "data-report.jsonl").read_text().splitlines()]
    assert [Path(each["file"]).name for each in listed] == ["notes.txt", "broken.jpg", "cut.png"]
    assert all(each["reason"] for each in listed)
    assert "unreadable 2" in data.messages[0]


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp", "tiff"])
@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_the_typical_shape_is_that_of_turned_photos(tmp_path: Path, kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    (tmp_path / "cat").mkdir()
    for number in range(3):
        Image.new("RGB", (7, 5)).save(tmp_path / "cat" / f"{number}.{kind}", exif=exif)
    source = ImageFolder.open(str(tmp_path))
    width, height = plain_image(next(iter(source)).image, 3).size
    assert (height, width) == ((5, 7) if orientation < 5 else (7, 5))
    assert typical_shape(source, QUIET, len(source)) == ImageShape((height, width), 3)


def test_equal_images_are_on_the_same_side(folder: Path, tmp_path: Path) -> None:
    for number in range(11):
        place = folder / "cat" / ("more" if number % 2 else "") / f"{number}.png"
        with Image.open(place) as image:
            image.save(folder / "dog" / f"copy-{number}.bmp")  # other bytes, the same pixels
    data = prepare_images(ImageFolder.open(str(folder)), None, tmp_path, SHAPE).set
    sides = [{data.images[index].tobytes() for index in part} for part in (data.train, data.valid)]
    assert sides[0] and sides[1] and not sides[0] & sides[1]


def test_the_same_images_are_held_out_at_every_resolution(folder: Path, tmp_path: Path) -> None:
    source = ImageFolder.open(str(folder))
    small, large = (prepare_images(source, None, tmp_path / str(side), ImageShape((side, side), 3)) for side in (7, 13))
    assert small.set.valid.tolist() == large.set.valid.tolist()


def test_the_held_out_share() -> None:
    def share(count: int) -> float:
        return held_out_images([number.to_bytes(8, "little") for number in range(count)]).mean()

    assert share(100) == pytest.approx(0.2)
    assert share(2000) == pytest.approx(0.1)
    assert share(20_000) == pytest.approx(0.05)


def test_given_validation_images_are_the_validation_set(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "dog"
    other.mkdir(parents=True)
    (folder / "dog" / "0.png").rename(other / "0.png")
    data = prepare_images(ImageFolder.open(str(folder)), ImageFolder.open(str(other.parent)), tmp_path, SHAPE)
    assert len(data.set.valid) == 1 and len(data.set.train) == 21
    assert data.labels[data.set.classes[data.set.valid[0]]] == "dog"


def test_changed_images_are_noticed(folder: Path, tmp_path: Path) -> None:
    data = prepare_images(ImageFolder.open(str(folder)), None, tmp_path, SHAPE)
    (folder / "cat" / "0.png").rename(folder / "dog" / "moved.png")
    with pytest.raises(UserError, match="have changed"):
        prepare_images(ImageFolder.open(str(folder)), None, tmp_path, SHAPE, expected=Expected(data.key))


def test_statistics_are_those_of_numpy() -> None:
    images = np.random.Generator(np.random.PCG64(2)).integers(0, 200, (523, 3, 5, 7), np.uint8)
    chosen = np.arange(3, 523, 2)
    mean, deviation = pixel_statistics(images, chosen)
    np.testing.assert_allclose(mean, (images[chosen] / 255).mean((0, 2, 3)))
    np.testing.assert_allclose(deviation, (images[chosen] / 255).std((0, 2, 3)))
    assert pixel_statistics(np.zeros((3, 1, 2, 2), np.uint8), np.arange(3)) == ([0.0], [1 / 255])


def test_folders_without_classes_are_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        ImageFolder.open(str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"0\.png is in no sub-folder"):
        ImageFolder.open(str(folder / "cat"))
    (tmp_path / "empty" / "cat").mkdir(parents=True)
    with pytest.raises(UserError, match="no sub-folder holds images"):
        ImageFolder.open(str(tmp_path / "empty"))
    with pytest.raises(UserError, match="--valid-idx-images and --valid-idx-labels go together"):
        open_images(None, "a", None, "--valid-")
    with pytest.raises(UserError, match="not both"):
        open_images("a", "b", "c")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_a_class_whose_name_would_break_a_line_is_refused(folder: Path) -> None:
    (folder / "wild\tcat").mkdir()
    with pytest.raises(UserError, match=r"by its sub-folders: label \d is 'wild\\tcat'"):
        ImageFolder.open(str(folder))


def test_held_out_images_that_are_trained_on_are_told_of(folder: Path, tmp_path: Path) -> None:
    source = ImageFolder.open(str(folder))
    shutil.copytree(folder, tmp_path / "others")
    (tmp_path / "others" / "cat" / "0.png").write_bytes((folder / "dog" / "0.png").read_bytes())
    for number in range(1, 11):
        Image.new("RGB", (7, 5), (number, 0, 0)).save(next((tmp_path / "others" / "dog").rglob(f"{number}.png")))
    data = prepare_images(source, ImageFolder.open(str(tmp_path / "others")), tmp_path, SHAPE)
    (line,) = data.messages
    assert line == "12 of 22 held-out images are also in the training files: the scores on them say little"
    assert line in (tmp_path / "data-report.jsonl").read_text(encoding="utf-8")
