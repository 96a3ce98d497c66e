"""One image, in whatever form it comes, as an array of bytes of a given size."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from heedful.config import shown
from heedful.errors import UserError

# The most pixels of an image: a small file may unpack to a huge one.
MOST_PIXELS = 2**25
# Formats of images; Pillow reads some others by starting programs.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
_ROWS_TOGETHER = 256
# What Pillow calls the images of a JPEG file that holds several.
_JPEG_SERIES = "MPO"
# The orientations of EXIF that lay an image on its side.
_QUARTER_TURNS = (5, 6, 7, 8)
# Only one thread at a time reads a header: warning filters apply to all threads.
_HEADERS = Lock()

T = TypeVar("T")
ImageInput = str | Path | NDArray[Any] | Image.Image

# Pillow's modes without colour; the last ones have 16 bits or more.
GREY_MODES = ("1", "L", "LA", "La", "I", "I;16", "I;16L", "I;16B", "I;16N")


# A longer image would show too little once its shorter side is scaled to the length asked for.
LONGEST_RATIO = 100


class Scaling(NamedTuple):
    """How an image gets its size: with a filter, and perhaps made larger before its middle is cut out.

    `before_cut` is a height and a width, or only the length of the shorter side.
    """

    filter: str = "bilinear"
    before_cut: tuple[int, ...] | None = None

    def size(self, plain: Image.Image, wanted: tuple[int, int]) -> tuple[int, int]:
        """The height and width that an image is scaled to."""
        if self.before_cut is None:
            return wanted
        if len(self.before_cut) == 2:
            return self.before_cut[0], self.before_cut[1]
        shorter, longer = sorted(plain.size)
        if longer > LONGEST_RATIO * shorter:
            raise ValueError(f"it is more than {LONGEST_RATIO} times as long as wide")
        short, long = self.before_cut[0], int(self.before_cut[0] * longer / shorter)
        return (short, long) if plain.height == shorter else (long, short)


BILINEAR = Scaling()


def image_endings() -> frozenset[str]:
    """The endings of file names for the image formats that are read."""
    return frozenset(ending for ending, name in Image.registered_extensions().items() if name in FORMATS)


def read_image(image: ImageInput | BinaryIO) -> Image.Image:
    """An opened image, not yet decoded if it is a file; other formats and too many pixels are errors."""
    opened = _opened(image)
    reason = None
    if opened.format not in (None, *FORMATS, _JPEG_SERIES):
        reason = f"its format is {opened.format}: expected one of {', '.join(FORMATS)}"
    elif opened.width * opened.height > MOST_PIXELS:
        reason = f"it has {opened.width} x {opened.height} pixels, more than {MOST_PIXELS:,}: scale it down"
    if reason is None:
        return opened
    if opened is not image:  # somebody else's stays open
        opened.close()
    raise ValueError(reason)


@contextmanager
def opened_image(image: ImageInput | BinaryIO) -> Iterator[Image.Image]:
    """An image as `read_image` gives it, closed at the end of the block unless it came open."""
    opened = read_image(image)
    try:
        yield opened
    finally:
        if opened is not image:
            opened.close()


def as_array(image: Any) -> Any:
    """The array that a tensor holds; anything else as it is. Torch is not imported: without it there are no tensors."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(image, torch.Tensor):
        return image
    image = image.detach().cpu()
    return image.float().numpy() if image.dtype == torch.bfloat16 else image.numpy()  # arrays have no bfloat16


def _of_array(image: NDArray[Any]) -> Image.Image:
    if image.dtype != np.uint8:
        raise ValueError(f"an array of {image.dtype}, expected uint8 from 0 to 255")
    if image.ndim != 2 and (image.ndim != 3 or image.shape[2] > 4):
        raise ValueError(
            f"an array of the shape {image.shape}, expected H W, or H W C with 1, 3 or 4 channels: if its channels "
            "come first, move them to the end"
        )
    return Image.fromarray(image[:, :, 0] if image.ndim == 3 and image.shape[2] == 1 else image)


def _opened(image: ImageInput | BinaryIO) -> Image.Image:
    image = as_array(image)
    if isinstance(image, Image.Image):
        return image
    if not isinstance(image, str | Path | np.ndarray) and not hasattr(image, "read"):
        raise ValueError(f"it is {shown(image)}: expected a file name, an array, a tensor or an image of Pillow")
    if isinstance(image, np.ndarray):
        return _of_array(image)
    try:
        with _HEADERS, warnings.catch_warnings():
            # Pillow has a limit of its own; beyond twice that, it raises instead of warning.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            return Image.open(image, formats=FORMATS)
    except Image.DecompressionBombError:
        raise ValueError(f"it has more than {MOST_PIXELS:,} pixels: scale it down") from None
    except UnidentifiedImageError:
        raise ValueError(f"it is not an image of a format that is read: {', '.join(FORMATS)}") from None


def has_colour(image: Image.Image) -> bool:
    """Whether an image may hold colours, judging by its header."""
    return image.mode not in GREY_MODES


def turned_size(image: Image.Image) -> tuple[int, int]:
    """The height and width of an image once it is turned as its camera says, judging by its header."""
    # The size of a TIFF is that after the turn already; and the method that PNG has of its own decodes the whole file.
    turned = image.format != "TIFF" and Image.Image.getexif(image).get(ExifTags.Base.Orientation) in _QUARTER_TURNS
    return image.size if turned else (image.height, image.width)


def plain_image(image: ImageInput, channels: int) -> Image.Image:
    """The image in its own size, turned as its camera says, with 1 channel (grey) or 3; transparency becomes white.

    Raises whatever Pillow raises if the image cannot be decoded.
    """
    with opened_image(image) as opened:
        # Only where it is needed: the function copies every image, and large ones take a lot of memory.
        turned = opened.getexif().get(ExifTags.Base.Orientation, 1) != 1
        plain = ImageOps.exif_transpose(opened) if turned else opened
        if plain.mode.startswith("I"):
            plain = Image.fromarray((np.asarray(plain).clip(0, 65535) // 257).astype(np.uint8))
        elif plain.mode == "F":
            raise ValueError("its pixels are floating-point numbers")
        mode = "L" if channels == 1 else "RGB"
        return _on_white(plain, mode) if plain.has_transparency_data else plain.convert(mode)


def _on_white(image: Image.Image, mode: str) -> Image.Image:
    """A transparent image on white, some rows at a time, so the intermediate forms take little memory."""
    result = Image.new(mode, image.size)
    for top in range(0, image.height, _ROWS_TOGETHER):
        rows = image.crop((0, top, image.width, min(top + _ROWS_TOGETHER, image.height))).convert("RGBA")
        result.paste(Image.alpha_composite(Image.new("RGBA", rows.size, "white"), rows).convert(mode), (0, top))
    return result


def scaled_pixels(plain: Image.Image, size: tuple[int, int], scaling: Scaling = BILINEAR) -> NDArray[np.uint8]:
    """A plain image as C H W of the given height and width."""
    height, width = scaling.size(plain, size)
    if plain.size != (width, height):
        plain = plain.resize((width, height), Image.Resampling[scaling.filter.upper()])
    if (height, width) != size:
        top, left = (height - size[0]) // 2, (width - size[1]) // 2
        plain = plain.crop((left, top, left + size[1], top + size[0]))
    pixels_HWC = np.asarray(plain).reshape(*size, -1)
    return np.ascontiguousarray(pixels_HWC.transpose(2, 0, 1))


def or_reason(decode: Callable[[], T]) -> T | str:
    """What `decode` returns, or the reason in a few words if it fails."""
    try:
        return decode()
    except MemoryError:
        raise
    except Exception as error:  # Pillow's readers of broken files raise exceptions of all kinds
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        return str(error).splitlines()[0] if str(error) else type(error).__name__


def decode_image(
    image: ImageInput, size: tuple[int, int], channels: int, scaling: Scaling = BILINEAR
) -> NDArray[np.uint8] | str:
    """The image as C H W, or the reason in a few words if it cannot be decoded."""
    return or_reason(lambda: scaled_pixels(plain_image(image, channels), size, scaling))


def load_image(
    image: ImageInput, size: tuple[int, int], channels: int, scaling: Scaling = BILINEAR
) -> NDArray[np.uint8]:
    """An image that a user named or gave, as C H W; one that cannot be decoded is a UserError."""
    pixels = decode_image(image, size, channels, scaling)
    if isinstance(pixels, str):
        name = image if isinstance(image, str | Path) else "an image"
        raise UserError(f"{name} cannot be read as an image: {pixels}")
    return pixels


def parse_resolution(text: str | None) -> tuple[int, int] | None:
    """`40` or `40x56` as height and width."""
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.strip().isdecimal() for part in parts):
        raise UserError(f"--resolution {text!r}: expected a number of pixels such as 40, or height and width as 40x56")
    return int(parts[0]), int(parts[-1])
