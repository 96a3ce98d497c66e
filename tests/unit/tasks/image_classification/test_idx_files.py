import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from heedful.errors import UserError
from heedful.tasks.image_classification.files import IdxImages
from heedful.tasks.image_classification.idx_files import IdxFile


def idx_bytes(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(length.to_bytes(4, "big") for length in array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.mark.parametrize("ending", [".idx", ".gz"])
@pytest.mark.parametrize("shape", [(7, 3, 5), (11,), (10007, 13, 11), (2, 3, 5, 3)])
def test_items_come_as_they_were_written(ending: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    array = np.random.Generator(np.random.PCG64(1)).integers(0, 256, shape, np.uint8)
    path = tmp_path / f"file{ending}"
    path.write_bytes(gzip.compress(idx_bytes(array), 1) if ending == ".gz" else idx_bytes(array))
    file = IdxFile.open(path)
    assert file.shape == shape
    np.testing.assert_array_equal(np.array(list(file.items())), array)


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    path = tmp_path / "file"
    good = idx_bytes(np.zeros((3, 2, 2)))
    for content, message in (
        (b"some text", "is not an idx file"),
        (b"", "is not an idx file"),
        (good[:9], "is not an idx file"),
        (good[:2] + b"\x0d" + good[3:], "type 13"),
    ):
        path.write_bytes(content)
        with pytest.raises(UserError, match=message):
            IdxFile.open(path)
    for content in (good[:-1], good[:-4], good + b"x"):
        path.write_bytes(content)
        with pytest.raises(UserError, match="does not hold the 3 items"):
            list(IdxFile.open(path).items())


def header(*shape: int) -> bytes:
    return bytes([0, 0, 8, len(shape)]) + b"".join(length.to_bytes(4, "big") for length in shape)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("images", "labels"),
    [
        ((2, 2**32 - 1, 2**32 - 1), (2,)),
        ((2, 46341, 46341), (2,)),
        ((2**32 - 1, 28, 28), (2**32 - 1,)),
        ((2, 0, 28), (2,)),
        ((2, 1000, 1000, 255), (2,)),
    ],
)
def test_absurd_sizes_are_refused_before_anything_is_read(
    images: tuple[int, ...], labels: tuple[int, ...], packed: bool, tmp_path: Path
) -> None:
    pack = gzip.compress if packed else bytes
    (tmp_path / "images").write_bytes(pack(header(*images) + b"x" * 999))
    (tmp_path / "labels").write_bytes(pack(header(*labels) + b"\x00\x01"))
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=str(tmp_path / "images")):
            IdxImages.open(str(tmp_path / "images"), str(tmp_path / "labels"))
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_a_command_refuses_absurd_sizes(run, tmp_path: Path) -> None:
    (tmp_path / "images").write_bytes(header(2**31, 2**31, 2**31))
    (tmp_path / "labels").write_bytes(header(2**31) + b"\x00\x01")
    files = ["--idx-images", tmp_path / "images", "--idx-labels", tmp_path / "labels", "--out", tmp_path / "out"]
    text = run("train", "image-classifier", *files, code=2).stderr.decode()
    assert text.count("\n") == 1
    assert "images says that its images have 2147483648 x 2147483648 pixels" in text
