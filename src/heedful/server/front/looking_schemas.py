"""What clients send to look inside a model, and what they get."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from heedful.decoding.options import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from heedful.server.front.schemas import WHOLE, Remarks, Strict, Text, model_name
from heedful.server.front.text_schemas import BY_IMAGE, OF_IMAGE, OF_TEXT, ImageData, Resolution

# Names of attention layers are far shorter, and heads far fewer.
LONGEST_NAME, MOST_HEADS = 100, 10_000


class AttentionOfTextRequest(Strict):
    """A text (and for a translation model its translation, if it is not to be the model's own) to look into."""

    model: str | None = model_name("attention")
    text: Text
    target: Text | None = None


class AttentionOfImageRequest(Strict):
    """An image to look into, at its training's size or at another `resolution`."""

    model: str | None = model_name("attention_of_images")
    image: ImageData
    resolution: Resolution = None


AttentionRequest = Annotated[
    Annotated[AttentionOfTextRequest, OF_TEXT] | Annotated[AttentionOfImageRequest, OF_IMAGE], BY_IMAGE
]


class AttentionAnswer(BaseModel):
    """An attention document: weights for each kind, layer, head, query and key."""

    model_config = ConfigDict(extra="allow")

    format: int
    model: str
    family: str
    texts: list[str]
    sequences: dict[str, list[str]]
    maps: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    image: dict[str, Any] | None
    remarks: Remarks


class HeadOff(Strict):
    """A head that gives nothing: the name of its attention, such as encoder.0.attention, and its number, from 0."""

    attention: Annotated[str, Field(max_length=LONGEST_NAME)]
    head: Annotated[int, Field(ge=0, le=MOST_HEADS), WHOLE]


class ExplainSwitches(Strict):
    """What is changed in a computation: logits over a temperature, and what is left out of it."""

    temperature: Annotated[float, Field(ge=LOWEST_TEMPERATURE, le=HIGHEST_TEMPERATURE)] = 1.0
    scaling: bool = True
    mask: bool = True
    positions: bool = True
    head_off: HeadOff | None = None


class ExplainOfTextRequest(Strict):
    """A text (and its translation, or what follows it, or the second of a pair) to follow through a model."""

    model: str | None = model_name("explain")
    text: Text
    target: Text | None = None
    switches: ExplainSwitches | None = None


class ExplainOfImageRequest(Strict):
    """An image to follow through a model, at its training's size or at another `resolution`."""

    model: str | None = model_name("explain_images")
    image: ImageData
    resolution: Resolution = None
    switches: ExplainSwitches | None = None


ExplainRequest = Annotated[
    Annotated[ExplainOfTextRequest, OF_TEXT] | Annotated[ExplainOfImageRequest, OF_IMAGE], BY_IMAGE
]


class ExplainAnswer(BaseModel):
    """The parts of a model, the steps of each with their numbers in 16 bits, and the likeliest answers."""

    model_config = ConfigDict(extra="allow")

    format: int
    model: str
    family: str
    summary: str
    texts: list[str]
    sequences: dict[str, list[str]]
    parts: list[dict[str, Any]]
    answers: list[list[dict[str, Any]]]
    remarks: Remarks
