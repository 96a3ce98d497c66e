"""What clients send to the routes of /api that take texts or images, and what they get."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

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

Pair = Annotated[list[Text], Field(min_length=2, max_length=2)]
ImageData = Annotated[
    str,
    Field(min_length=1, description="An image file (PNG, JPEG, ...) as base64, or as a data: URL of it."),
]


Side = Annotated[int, Field(ge=1, le=1024), WHOLE]
Resolution = Side | Annotated[list[Side], Field(min_length=2, max_length=2)] | None


def _text_or_image(body: Any) -> str:
    """Which of two forms a body is meant to have, so that only what does not fit that one is reported."""
    return "Image" if isinstance(body, dict) and "image" in body else "Text"


# The first goes after a union of two bodies with these tags.
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
