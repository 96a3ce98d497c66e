"""Images with labels as users have them: a folder with a sub-folder for each class, or a pair of idx files."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UserError
from heedful.tasks.image_classification.idx_files import IdxFile
from heedful.tasks.image_classification.images import MOST_PIXELS, ImageInput, image_endings
from heedful.text.label_names import check_label_names


class LabelledImage(NamedTuple):
    """An image, what to call it, and the number of its class."""

    name: str
    image: ImageInput
    label: int


class LabelledImages(Protocol):
    """Images, each of one of the classes that `labels` names."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes."""

    @property
    def files(self) -> list[Path]:
        """All files whose contents matter."""

    @property
    def layout(self) -> list[str]:
        """What matters besides the files' contents: where the images of a folder are."""

    @property
    def strangers(self) -> dict[Path, str]:
        """Files that are skipped, and why."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[LabelledImage]: ...


# Folders that systems leave beside a user's, like hidden ones: they hold copies, or no images at all.
SYSTEM_FOLDERS = ("__MACOSX", "@eaDir")
NO_IMAGE, IN_SYSTEM_FOLDER = "its name does not end as that of an image that is read", "its folder is a hidden one"


def _is_of_system(folder: str) -> bool:
    return folder.startswith(".") or folder in SYSTEM_FOLDERS


@dataclass(frozen=True)
class ImageFolder:
    """The images in the sub-folders of a folder; a sub-folder's name is the label of everything in it."""

    path: Path
    labels: tuple[str, ...]
    files: list[Path]
    strangers: dict[Path, str]

    @classmethod
    def open(cls, name: str) -> "ImageFolder":
        """List a folder's images; a folder without classes is a UserError."""
        path = Path(name)
        if not path.is_dir():
            raise UserError(f"there is no folder {path}: --images takes a folder with a sub-folder for each class")
        labels = tuple(sorted(each.name for each in path.iterdir() if each.is_dir() and not _is_of_system(each.name)))
        check_label_names(labels, f"{path}, by its sub-folders")
        endings = image_endings()
        inside = sorted(file for file in path.rglob("*") if file.is_file() and file.parent != path)
        hidden = {file for file in inside if any(map(_is_of_system, file.relative_to(path).parts[:-1]))}
        files = [file for file in inside if file.suffix.lower() in endings and file not in hidden]
        outside = sorted(file for file in path.iterdir() if file.is_file())
        astray = [file for file in outside if file.suffix.lower() in endings]
        if astray or not files:
            what = f"{astray[0].name} is in no sub-folder" if astray else "no sub-folder holds images"
            raise UserError(f"{path}: {what}; expected a sub-folder for each class, such as {path / 'cat' / '1.jpg'}")
        strangers = sorted([*outside, *(set(inside) - set(files))])
        reasons = {file: IN_SYSTEM_FOLDER if file in hidden else NO_IMAGE for file in strangers}
        return cls(path, labels, files, reasons)

    @property
    def layout(self) -> list[str]:
        """Where each file is."""
        return [file.relative_to(self.path).as_posix() for file in self.files]

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[LabelledImage]:
        numbers = {label: number for number, label in enumerate(self.labels)}
        for file in self.files:
            yield LabelledImage(str(file), file, numbers[file.relative_to(self.path).parts[0]])


@dataclass(frozen=True)
class IdxImages:
    """Images and their labels in a pair of idx files; the labels are numbers from 0 up."""

    images: IdxFile
    numbers: NDArray[np.uint8]
    labels: tuple[str, ...]
    files: list[Path]

    @classmethod
    def open(cls, images: str, labels: str) -> "IdxImages":
        """Read the headers and the labels; files that do not go together are a UserError."""
        paths = [Path(images), Path(labels)]
        for path in paths:
            if not path.is_file():
                raise UserError(f"there is no file {path}: check the name and the folder")
        pixels, classes = (IdxFile.open(path) for path in paths)
        for file, expected, axes in ((pixels, "images", (3, 4)), (classes, "labels", (1,))):
            if len(file.shape) not in axes:
                raise UserError(f"{file.path} has {len(file.shape)} axes: it holds no {expected}")
        height, width = pixels.shape[1:3]
        if not 0 < height * width <= MOST_PIXELS:
            raise UserError(f"{images} says that its images have {height} x {width} pixels, not 1 to {MOST_PIXELS:,}")
        if pixels.shape[0] != classes.shape[0] or pixels.shape[0] == 0:
            raise UserError(
                f"{images} holds {pixels.shape[0]:,} images, but {labels} {classes.shape[0]:,} labels: "
                "each image needs its label"
            )
        for file in (pixels, classes):
            file.check_size()
        numbers = np.fromiter(classes.items(), np.uint8)
        return cls(pixels, numbers, tuple(str(number) for number in range(int(numbers.max()) + 1)), paths)

    @property
    def layout(self) -> list[str]:
        """Everything that matters is in the files."""
        return []

    @property
    def strangers(self) -> dict[Path, str]:
        """Nothing is skipped."""
        return {}

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[LabelledImage]:
        for place, (pixels, number) in enumerate(zip(self.images.items(), self.numbers, strict=True)):
            yield LabelledImage(f"{self.images.path}, image {place}", pixels, int(number))


def open_images(
    folder: str | None, idx_images: str | None, idx_labels: str | None, prefix: str = "--"
) -> LabelledImages | None:
    """The images that options of these names stand for, or None if they are not given."""
    flags = [f"{prefix}{name}" for name in ("images", "idx-images", "idx-labels")]
    if folder and (idx_images or idx_labels):
        raise UserError(f"give {flags[0]}, or {flags[1]} and {flags[2]}, not both")
    if folder:
        return ImageFolder.open(folder)
    if not idx_images and not idx_labels:
        return None
    if not idx_images or not idx_labels:
        raise UserError(f"{flags[1]} and {flags[2]} go together: one of them is missing")
    return IdxImages.open(idx_images, idx_labels)
