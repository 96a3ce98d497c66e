"""What `heedful inspect` and `heedful explain` look at: a text or an image, which follows the name of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from heedful.cli.lines import tell
from heedful.cli.text_input import TextInput, text_input
from heedful.errors import UserError
from heedful.tasks.remarks import remarks

Seen = TypeVar("Seen")


@dataclass(frozen=True)
class SubjectInput:
    """What was given to look at: a text, perhaps with a target, or an image, perhaps with a resolution."""

    command: str
    text: TextInput
    target: str | None
    image: str | None
    resolution: str | None

    @property
    def is_given(self) -> bool:
        """Whether the command line names any of it."""
        return self.text.is_given or any(each is not None for each in (self.target, self.image, self.resolution))

    def seen(self, model: str, device: str, look: Callable[..., Seen]) -> Seen:
        """Load the model, and have a function look at the subject: it takes a pipeline, the subject and its options."""
        if self.image is not None:
            return self._image_seen(self.image, model, device, look)
        if self.resolution is not None:
            raise UserError("--resolution is the size of an image: give --image FILE too")
        return self._text_seen(model, device, look)

    def _text_seen(self, model: str, device: str, look: Callable[..., Seen]) -> Seen:
        from heedful.tasks.image_classification.pipeline import ImageClassifier
        from heedful.tasks.loading import load

        if len(self.text.texts) > 1:
            raise UserError(f"there are {len(self.text.texts)} texts after the model: give one, in quotes")
        pipeline = load(model, device, engine="torch")
        if isinstance(pipeline, ImageClassifier):
            raise UserError(f"{model} classifies images: give --image FILE")
        (text,) = self.text.whole_texts("a text to look at")
        if not text and not self.text.is_given:
            example = f'heedful {self.command} {model} "A dog runs."'
            raise UserError(f"no text to look at: give it after the model, as in {example}")
        with remarks() as found:
            seen = look(pipeline, text, target=self.target)
        for _, remark in found:
            tell(f"the text {remark}")
        return seen

    def _image_seen(self, image: str, model: str, device: str, look: Callable[..., Seen]) -> Seen:
        from heedful.tasks.image_classification.images import parse_resolution
        from heedful.tasks.image_classification.pipeline import ImageClassifier
        from heedful.tasks.loading import load

        if self.text.is_given or self.target is not None:
            raise UserError("--image takes no text and no --target: leave them out")
        resolution = parse_resolution(self.resolution)
        pipeline = load(model, device)
        if not isinstance(pipeline, ImageClassifier):
            raise UserError(f"{model} holds no image classifier: its task is {pipeline.config.task!r}; give a text")
        return look(pipeline, image, resolution=resolution)


def subject_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take a text, `--target`, `--image` and `--resolution`, as its argument `subject`."""

    @wraps(command)
    def with_subject(
        *arguments: Any, given: TextInput, target: str | None, image: str | None, resolution: str | None, **others: Any
    ) -> None:
        command(*arguments, subject=SubjectInput(command.__name__, given, target, image, resolution), **others)

    options = (
        text_input("[TEXT]"),
        click.option(
            "--target",
            metavar="TEXT",
            help="Translation: the output to look at, in place of the model's own. Language models: what follows the "
            "text. Classifiers of pairs: the second text.",
        ),
        click.option("--image", metavar="FILE", help="Image classifiers: the image to look at."),
        click.option(
            "--resolution", metavar="PIXELS", help="Use the image at a different size from training: 40, or 40x56."
        ),
    )
    for option in reversed(options):
        with_subject = option(with_subject)
    return with_subject
