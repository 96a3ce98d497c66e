"""What clients send to the other routes of /api, and get from them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from heedful.decoding.options import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE
from heedful.server.front.schemas import (
    DRAWN_AT,
    LARGEST_SEED,
    LIMIT,
    SEVERAL,
    TEXT,
    WHOLE,
    NoRepeatNgram,
    Remarks,
    RepetitionPenalty,
    ResponseBody,
    Strict,
    Text,
    Texts,
    TopP,
    model_name,
    zero_or_up_to,
)

# Names of attention layers, and heads, are far fewer.
LONGEST_NAME, MOST_HEADS = 100, 10_000

Pair = Annotated[list[Text], Field(min_length=2, max_length=2)]
ImageData = Annotated[
    str,
    Field(min_length=1, description="An image file (PNG, JPEG, ...) as base64, or as a data: URL of it."),
]


Side = Annotated[int, Field(ge=1, le=1024), WHOLE]
Resolution = Side | Annotated[list[Side], Field(min_length=2, max_length=2)] | None


def _text_or_image(body: Any) -> str:
    """Which of two forms a body is meant to have, so that only what does not fit that one is told."""
    return "Image" if isinstance(body, dict) and "image" in body else "Text"


# To be put after a union of two bodies with these tags.
BY_IMAGE, OF_TEXT, OF_IMAGE = Discriminator(_text_or_image), Tag("Text"), Tag("Image")


class GenerateRequest(Strict):
    """A text to continue."""

    model: str | None = model_name("generate")
    prompt: Text = ""
    max_tokens: (
        Annotated[int, Field(ge=1, json_schema_extra={LIMIT: "tokens"}, description="200 by default."), WHOLE] | None
    ) = None
    temperature: Annotated[float, Field(ge=0, le=100), DRAWN_AT, zero_or_up_to(100)] = 0.8
    top_k: Annotated[int, Field(ge=1), WHOLE] | None = None
    top_p: TopP | None = None
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED), WHOLE] = 0
    stop: Annotated[list[Annotated[Text, Field(min_length=1)]], Field(max_length=16)] = Field(default_factory=list)
    samples: Annotated[int, Field(ge=1, le=16), WHOLE] = 1
    repetition_penalty: RepetitionPenalty = 1.0
    no_repeat_ngram: NoRepeatNgram = 0
    stream: bool = False
    probabilities: Annotated[bool, Field(description="Whether to give tokens, their probabilities and others'.")] = (
        False
    )


class RunnerUp(ResponseBody):
    """A token that could have stood there."""

    text: str
    probability: float


class GeneratedToken(ResponseBody):
    """What a token added to the text, and its probability; null for what was held back until the end."""

    text: str
    probability: float | None
    runners_up: list[RunnerUp]


class GeneratedSample(ResponseBody):
    """A text that continues the prompt; `tokens` if probabilities were asked for."""

    text: str
    tokens: list[GeneratedToken] | None


class GenerateAnswer(ResponseBody):
    """The samples."""

    samples: list[GeneratedSample]
    remarks: Remarks


class ClassifyTextRequest(Strict):
    """A text, or several, or several pairs of texts, to label."""

    model: str | None = model_name("classify")
    text: Text | Annotated[list[Text | Pair], SEVERAL]


class ClassifyImageRequest(Strict):
    """An image to label, at its training's size or at another `resolution` (both sides, or height and width)."""

    model: str | None = model_name("classify_images")
    image: ImageData
    resolution: Resolution = None


ClassifyRequest = Annotated[
    Annotated[ClassifyTextRequest, OF_TEXT] | Annotated[ClassifyImageRequest, OF_IMAGE], BY_IMAGE
]


class LabelResult(ResponseBody):
    """The likeliest label (null for a blank text), and the probabilities of all."""

    label: str | None
    probabilities: dict[str, float]


class ClassifyAnswer(ResponseBody):
    """A result for each input, in order."""

    results: list[LabelResult]
    remarks: Remarks


class TaggedWordBody(ResponseBody):
    """A word with its likeliest tag."""

    word: str
    tag: str
    probability: float


class TagResult(ResponseBody):
    """The words of a text."""

    words: list[TaggedWordBody]


class TagAnswer(ResponseBody):
    """A result for each text, in order."""

    results: list[TagResult]
    remarks: Remarks


class TextResult(ResponseBody):
    """What became of a text."""

    text: str


class TextAnswer(ResponseBody):
    """A result for each text, in order."""

    results: list[TextResult]
    remarks: Remarks


MaskedText = Annotated[str, Field(json_schema_extra={**TEXT, "pattern": r"\[MASK\]"})]


class FillRequest(Strict):
    """A text with one or more `[MASK]`, or several such texts."""

    model: str | None = model_name("fill")
    text: MaskedText | Annotated[list[MaskedText], SEVERAL]
    top: Annotated[int, Field(ge=1, le=100), WHOLE] = 5


class FillingBody(ResponseBody):
    """A token that may stand in the place of a mask."""

    token: str
    probability: float


class FillResult(ResponseBody):
    """For each mask of a text its likeliest tokens."""

    masks: list[list[FillingBody]]


class FillAnswer(ResponseBody):
    """A result for each text, in order."""

    results: list[FillResult]
    remarks: Remarks


class EmbedRequest(Strict):
    """Texts to turn into vectors."""

    model: str | None = model_name("embed")
    text: Text | Texts
    normalize: Annotated[
        bool | None, Field(description="Whether to give vectors of length 1; by default as the model says.")
    ] = None


class EmbedAnswer(ResponseBody):
    """A vector for each text, in order."""

    vectors: list[list[float]]
    remarks: Remarks


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
