"""From images to one memory-mapped array of bytes, decoded once, with a part held out."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UserError
from heedful.prepared.data_report import DataReport
from heedful.prepared.folder import Expected, Ingredients, PreparedFolder, prepare_once
from heedful.prepared.held_out import content_digest, held_out_images
from heedful.prepared.overlap import count_shared, tell_shared
from heedful.prepared.progress import OnProgress, ThrottledProgress
from heedful.tasks.image_classification.files import LabelledImage, LabelledImages
from heedful.tasks.image_classification.images import (
    has_colour,
    opened_image,
    or_reason,
    plain_image,
    scaled_pixels,
    turned_size,
)

FORMAT = 2
# How many images are decoded side by side, or counted at a time for the statistics.
_TOGETHER = 256

Images = NDArray[np.uint8]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class ImageShape:
    """What all images are converted to: height, width, and one channel or three."""

    size: tuple[int, int]
    channels: int


@dataclass(frozen=True)
class ImageSet:
    """Images B C H W (or videos B C F H W), their classes, and which of them are for training and validation."""

    images: Images
    classes: Numbers
    train: Numbers
    valid: Numbers


@dataclass(frozen=True)
class PreparedImages:
    """Prepared images, the names of their classes, and what is known about them."""

    set: ImageSet
    labels: tuple[str, ...]
    folder: PreparedFolder

    @property
    def key(self) -> str:
        """Changes with the contents of the files, and with how they were prepared."""
        return self.folder.key

    @property
    def facts(self) -> dict[str, Any]:
        """What is known about the images."""
        return self.folder.facts

    @property
    def messages(self) -> list[str]:
        """What was left out, in words."""
        empty = self.facts["empty"]
        return [
            *self.folder.remarks,
            *self.folder.hits_in_words("files that were left out", self.facts["left_out"]),
            *([f"classes without any image to train on: {', '.join(empty)}"] if empty else []),
            *self.facts.get("warnings", []),
        ]


def typical_shape(images: Iterable[LabelledImage], progress: ThrottledProgress, total: int) -> ImageShape:
    """The median height and width, turned, and colour if any image has it, according to the images' headers."""
    sizes, colour = [], False
    for number, each in enumerate(images, 1):
        progress("looking at images", number, total)
        try:
            with opened_image(each.image) as image:
                sizes.append(turned_size(image))
                colour = colour or has_colour(image)
        except Exception:  # of any kind; the image will be reported when it is decoded
            continue
    if not sizes:
        raise UserError(f"none of the {total:,} images can be read")
    height, width = (int(each) for each in np.median(np.array(sizes), axis=0))
    return ImageShape((height, width), 3 if colour else 1)


def prepare_images(
    train: LabelledImages,
    valid: LabelledImages | None,
    folder: Path,
    shape: ImageShape,
    progress: OnProgress | None = None,
    expected: Expected | None = None,
) -> PreparedImages:
    """Prepare images in a folder, or open what is there if it came from the same content and shape."""
    throttled = ThrottledProgress(progress)
    sources = [train] if valid is None else [train, valid]
    files = [file for source in sources for file in source.files]
    choices = [FORMAT, shape.size, shape.channels, *([source.labels, source.layout] for source in sources)]
    names = [str(files[0]), "..."] if len(files) > 4 else [str(file) for file in files]

    def make(partial: Path, report: DataReport) -> dict[str, Any]:
        return _make(sources, partial, shape, report, throttled)

    prepared = prepare_once(folder, Ingredients(files, names, choices), make, throttled, expected)
    return _open(prepared, shape, train.labels)


def _open(prepared: PreparedFolder, shape: ImageShape, labels: tuple[str, ...]) -> PreparedImages:
    classes, train, valid = (np.load(prepared.path / f"{name}.npy") for name in ("classes", "train", "valid"))
    images = np.memmap(prepared.path / "images.bin", np.uint8, "r", shape=(len(classes), shape.channels, *shape.size))
    return PreparedImages(ImageSet(images, classes, train, valid), labels, prepared)


def _make(
    sources: Sequence[LabelledImages],
    partial: Path,
    shape: ImageShape,
    report: DataReport,
    progress: ThrottledProgress,
) -> dict[str, Any]:
    classes: list[int] = []
    hashes: list[bytes] = []
    ends: list[int] = []
    total = sum(map(len, sources))
    with (partial / "images.bin").open("wb") as out, ThreadPoolExecutor() as pool:
        for source in sources:
            for stranger, reason in source.strangers.items():
                report.hit("no image", "left out", file=str(stranger), reason=reason)
            for each, pixels, digest in decoded(source, shape, report, pool):
                out.write(pixels.tobytes())
                # The validation images may lack a class, so their classes may be numbered differently.
                classes.append(sources[0].labels.index(source.labels[each.label]))
                hashes.append(digest)
                progress("decoding images", len(classes) + report.hits()["unreadable"], total)
            ends.append(len(classes))
    held_out = held_out_images(hashes) if len(sources) == 1 else np.arange(len(classes)) >= ends[0]
    if len(sources) > 1:
        train_keys, valid_keys = (
            np.frombuffer(b"".join(some), "<u8") for some in (hashes[: ends[0]], hashes[ends[0] :])
        )
        tell_shared(report, count_shared(valid_keys, train_keys), len(valid_keys), "images")
    parts = {"train": np.flatnonzero(~held_out), "valid": np.flatnonzero(held_out)}
    for name, indices in parts.items():
        if not len(indices):
            raise UserError(
                f"no image is left for {'training' if name == 'train' else 'validation'}: give more of them"
            )
        np.save(partial / f"{name}.npy", indices)
    np.save(partial / "classes.npy", np.array(classes, np.int64))
    seen = {classes[index] for index in parts["train"]}
    images = np.memmap(partial / "images.bin", np.uint8, "r", shape=(len(classes), shape.channels, *shape.size))
    mean, deviation = pixel_statistics(images, parts["train"])
    return {
        "mean": mean,
        "deviation": deviation,
        "left_out": dict(report.hits()),
        "empty": [label for number, label in enumerate(sources[0].labels) if number not in seen],
        **({"warnings": report.warnings} if report.warnings else {}),
    }


def decoded(
    source: Iterable[LabelledImage], shape: ImageShape, report: DataReport, pool: ThreadPoolExecutor
) -> Iterator[tuple[LabelledImage, Images, bytes]]:
    """Every image that can be decoded, in order, its pixels, and a hash of them; the others are reported.

    The hash is of the pixels before scaling, so the same images are held out at every resolution.
    """

    def decode(each: LabelledImage) -> tuple[Images, bytes]:
        plain = plain_image(each.image, shape.channels)
        return scaled_pixels(plain, shape.size), content_digest(plain.tobytes())

    images = iter(source)
    while some := list(islice(images, _TOGETHER)):
        # Threads help with files; an array is scaled in less time than it takes to hand it to a thread.
        run = map if isinstance(some[0].image, np.ndarray) else pool.map
        results = run(lambda each: or_reason(lambda: decode(each)), some)
        for each, result in zip(some, results, strict=True):
            if isinstance(result, str):
                report.hit("unreadable", "left out", file=each.name, reason=result)
            else:
                yield each, *result


def pixel_statistics(images: Images, indices: Numbers) -> tuple[list[float], list[float]]:
    """The mean and the standard deviation of each channel over some images, of pixels from 0 to 1."""
    counts = np.zeros((images.shape[1], 256), np.int64)
    for first in range(0, len(indices), _TOGETHER):
        some = images[indices[first : first + _TOGETHER]]
        for channel in range(images.shape[1]):
            counts[channel] += np.bincount(some[:, channel].ravel(), minlength=256)
    shares, levels = counts / counts.sum(1, keepdims=True), np.arange(256) / 255
    mean = shares @ levels
    deviation = np.sqrt(np.maximum(0.0, shares @ levels**2 - mean**2))
    # Not zero even if all pixels are equal: pixels are divided by it.
    return mean.tolist(), np.maximum(deviation, 1 / 255).tolist()
