"""Learning to classify images."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from heedful.config import from_dict, merge, to_dict
from heedful.errors import UserError
from heedful.model_folder import ModelConfig
from heedful.models.vision import Vision
from heedful.prepared.folder import Expected
from heedful.prepared.progress import OnProgress, ThrottledProgress
from heedful.prepared.small_data import warning_of_few
from heedful.settings.vision import PixelConfig, ScalingConfig, VisionConfig
from heedful.tasks.card import trained_card
from heedful.tasks.image_classification.augmentation import AugmentationConfig
from heedful.tasks.image_classification.data import ImageShape, PreparedImages, prepare_images, typical_shape
from heedful.tasks.image_classification.files import LabelledImages, open_images
from heedful.tasks.image_classification.task import ImageTask
from heedful.tasks.job import Choice
from heedful.tasks.starting_model import StartingModel
from heedful.tasks.task import LearningSettings

# Images no larger than this keep their size; others are scaled to that of the published models.
SMALL_IMAGE = 64
USUAL_SIZE = (224, 224)
# A tenth of what suits random weights, since trained ones should change slowly. To be divided by the width.
FINE_TUNING_RATE = 0.0256
# Presets by width: the one nearest to the model to start from says how it is trained.
WIDTHS = {96: "vision_tiny", 192: "vit_tiny_16", 384: "vit_small_16", 768: "vit_base_16", 1024: "vit_large_16"}


@dataclass(frozen=True)
class ImageData:
    """The images to learn from, and those to measure on: folders with a sub-folder for each class, or idx files.

    With `start_from`, the run starts with the weights and settings of that model folder, at any size of images.
    """

    files: ClassVar = (
        "images",
        "idx_images",
        "idx_labels",
        "valid_images",
        "valid_idx_images",
        "valid_idx_labels",
        "start_from",
    )
    read_from_names: ClassVar = ()

    images: str | None = None
    idx_images: str | None = None
    idx_labels: str | None = None
    valid_images: str | None = None
    valid_idx_images: str | None = None
    valid_idx_labels: str | None = None
    start_from: str | None = None
    augmentation: AugmentationConfig = field(default_factory=AugmentationConfig)

    @property
    def start_folder(self) -> str | None:
        """The model folder that the run starts from."""
        return self.start_from

    @property
    def families(self) -> tuple[str, ...]:
        """The families that classify images."""
        return ("vision",)

    def _starting_model(self) -> StartingModel | None:
        return StartingModel(self.start_from, self.families) if self.start_from else None

    def base_settings(self) -> dict[str, Any]:
        """For a model to start from, a learning rate for weights that are not random; else nothing."""
        start = self._starting_model()
        if start is None:
            return {}
        rate = start.learning_rate(FINE_TUNING_RATE)
        return {"training": {"schedule": {"kind": "decay", "learning_rate": rate}}}

    def check(self) -> None:
        """Raise a UserError for files that are missing or do not go together."""
        self._sources()
        self._starting_model()

    def _sources(self) -> tuple[LabelledImages, LabelledImages | None]:
        train = open_images(self.images, self.idx_images, self.idx_labels)
        valid = open_images(self.valid_images, self.valid_idx_images, self.valid_idx_labels, "--valid-")
        if train is None:
            raise UserError("no data: give --images with a folder, or --idx-images and --idx-labels")
        if len(train.labels) < 2:
            raise UserError(f"{self.images or self.idx_labels} has only one class: there is nothing to tell apart")
        unknown = set(valid.labels) - set(train.labels) if valid else set()
        if unknown:
            raise UserError(f"the validation images have a class {min(unknown)!r} that the training images do not have")
        return train, valid

    def prepare(
        self, folder: Path, model_settings: dict[str, Any], progress: OnProgress, expected: Expected | None
    ) -> PreparedImageJob:
        """Decode the images, all scaled to one size."""
        train, valid = self._sources()
        start = self._starting_model()
        base = start.config if start else None
        size_from = "as asked" if model_settings.get("image_size") else "by the data"
        if base:
            size_from = size_from if "image_size" in model_settings else "of the model to start from"
            model_settings = merge(to_dict(base.model), model_settings)
        shape = self._shape(train, model_settings, ThrottledProgress(progress))
        if base:
            shape = replace(shape, channels=base.model.channels)
        data = prepare_images(train, valid, folder, shape, progress, expected)
        return PreparedImageJob(data, shape, valid is not None, self.augmentation, base, model_settings, size_from)

    def _shape(self, train: LabelledImages, settings: dict[str, Any], progress: ThrottledProgress) -> ImageShape:
        """The size that was asked for, or one that suits the images."""
        asked, patch = settings.get("image_size"), settings.get("patch_size")
        for name, value in (("image_size", asked), ("patch_size", patch)):
            if value is not None and len(value) != 2:
                raise UserError(f"model.{name} is {list(value)}: images need two numbers, height and width")
        typical = typical_shape(train, progress, len(train))
        if asked is not None:
            return replace(typical, size=(asked[0], asked[1]))
        # Not more than about 16 patches per side, if the patches are known.
        largest = 16 * max(patch) if patch else SMALL_IMAGE
        height, width = typical.size
        if max(height, width) <= largest:
            return typical
        scale = largest / max(height, width)
        scaled = max(1, round(height * scale)), max(1, round(width * scale))
        return replace(typical, size=scaled if patch else USUAL_SIZE)

    def start(self, model: nn.Module) -> None:
        """Copy the weights of the model to start from, if any; a head for another number of classes stays fresh."""
        start = self._starting_model()
        if start:
            assert isinstance(model, Vision)
            start.copy_to(model, with_head=start.config.model.num_classes == model.config.num_classes)


@dataclass(frozen=True)
class PreparedImageJob:
    """Images that are ready to learn from."""

    data: PreparedImages
    shape: ImageShape
    has_valid_files: bool
    augmentation: AugmentationConfig
    base: ModelConfig | None
    model_settings: dict[str, Any]
    # Where the size of the images comes from, in words.
    size_from: str

    tokenizer = None

    @property
    def key(self) -> str:
        """Changes with the contents of the files, and with how they were prepared."""
        return self.data.key

    @property
    def messages(self) -> list[str]:
        """What was left out, and what part of the model to start from cannot be used."""
        if self.base is None:
            return [*self.data.messages, *warning_of_few(len(self.data.set.train), "images")]
        if self.base.model.num_classes == len(self.data.labels):
            return self.data.messages
        note = f"the classifier starts from scratch: the model had {self.base.model.num_classes} classes"
        return [*self.data.messages, note]

    @property
    def num_tokens(self) -> int:
        """Patches of the training images, of the usual size if the model is not known yet."""
        small = max(self.shape.size) <= SMALL_IMAGE
        patch = self.model_settings.get("patch_size") or ((4, 4) if small else (16, 16))
        return len(self.data.set.train) * VisionConfig(self.shape.size, tuple(patch)).length

    def preset(self, family: str, device: torch.device) -> str:
        """A size that suits the images and the machine."""
        if self.base:
            own = self.base.model.width
            return WIDTHS[min(WIDTHS, key=lambda width: abs(width - own))]
        if max(self.shape.size) <= SMALL_IMAGE:
            return "vision_tiny"
        return "vit_small_16" if device.type != "cpu" and len(self.data.set.train) >= 100_000 else "vit_tiny_16"

    def complete(self, settings: VisionConfig) -> VisionConfig:
        """The settings, or those of the model to start from, completed from the images."""
        pixels = PixelConfig(tuple(self.data.facts["mean"]), tuple(self.data.facts["deviation"]))
        if self.base:
            settings = from_dict(VisionConfig, self.model_settings, "model")
            pixels = settings.pixels
            if settings.convolution:
                settings = replace(settings, convolution_grid=settings.convolution_grid or self.base.model.grid)
        return replace(
            settings,
            image_size=self.shape.size,
            channels=self.shape.channels,
            num_classes=len(self.data.labels),
            pixels=pixels,
            scaling=ScalingConfig(),  # as the training images are scaled, whatever the model to start from used
        )

    def choices(self) -> list[Choice]:
        """What is known about the data."""
        height, width = self.shape.size
        colour = "grey" if self.shape.channels == 1 else "colour"
        held_out = "given images" if self.has_valid_files else "by content hash"
        flip = self.augmentation.flips(self.shape.channels)
        erase = f", erasing in {self.augmentation.erase:.0%}" if self.augmentation.erase else ""
        return [
            Choice("training images", f"{len(self.data.set.train):,}", f"{len(self.data.labels)} classes"),
            Choice("held-out images", f"{len(self.data.set.valid):,}", held_out),
            Choice("images", f"{height}x{width}, {colour}", self.size_from),
            Choice("augmentation", f"shifts by {self.augmentation.shift:.1%}{', flips' * flip}{erase}", ""),
        ]

    def task(self, model: Vision, learning: LearningSettings) -> ImageTask:
        """Image classification, as the training loop sees it."""
        return ImageTask(model, self.data.set, self.augmentation, learning, self.data.labels.__getitem__)

    def model_config(self, family: str, settings: VisionConfig) -> ModelConfig:
        """What the model folder says about the model."""
        return ModelConfig(family, "image_classifier", settings, labels=self.data.labels, has_tokenizer=False)

    def card(self, config: ModelConfig, name: str, scores: dict[str, float]) -> str:
        """A README.md for the model folder."""
        learned_from = f"{len(self.data.set.train):,} images of {len(config.labels)} classes"
        return trained_card(config, name, "A classifier of images", learned_from, f"{config.model.summary()}.", scores)
