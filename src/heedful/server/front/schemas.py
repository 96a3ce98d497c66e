"""What clients send to /api and get from it; fields that are not described are refused."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

# Marks, in whose place the description of a running server has its own limits and names (see `openapi.py`).
LIMIT, MODELS = "x-limit", "x-models"
TEXT = {LIMIT: "characters"}
TEXTS = {LIMIT: "texts"}


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 5.0 is as whole as 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# To be put behind the limits of a number, which it comes before.
WHOLE = BeforeValidator(_whole)

# Larger numbers are not exact in all languages' JSON.
LARGEST_SEED = 2**53 - 1

Text = Annotated[str, Field(json_schema_extra=TEXT)]
Pair = Annotated[list[Text], Field(min_length=2, max_length=2)]
Texts = Annotated[list[Text], Field(min_length=1, json_schema_extra=TEXTS)]
ImageData = Annotated[
    str,
    Field(min_length=1, description="An image file (PNG, JPEG, ...) as base64, or as a data: URL of it."),
]


def model_name(*verbs: str) -> Any:
    """The field that names a model which can do one of these."""
    words = "The name of a model; can be left out where one model of the right kind is served."
    return Field(default=None, description=words, json_schema_extra={MODELS: list(verbs)})


class Strict(BaseModel):
    """A body that holds nothing but what is described, each field of its own type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    """What the server answers."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


class ErrorDetail(Answer):
    """What went wrong, by name and in words."""

    type: str
    message: str


class ErrorAnswer(Answer):
    """The answer to a request that was not carried out."""

    error: ErrorDetail


class ModelDescription(Answer):
    """A model that is served."""

    name: str
    task: str
    family: str
    parameters: int
    source_language: str | None
    target_language: str | None
    labels: list[str] | None


class ModelsAnswer(Answer):
    """All models that are served."""

    models: list[ModelDescription]


class TranslateRequest(Strict):
    """Texts to translate; with `stream` one text, whose translation is sent as it grows."""

    model: str | None = model_name("translate")
    text: Text | Texts
    beam: Annotated[int, Field(ge=1, le=32, description="Hypotheses kept at each step; 1 is greedy search."), WHOLE] = 5
    nbest: Annotated[
        int, Field(ge=1, le=32, description="Hypotheses to give; the beam is at least as wide."), WHOLE
    ] = 1
    prefix: Annotated[Text, Field(description="Text that every translation is to begin with.")] = ""
    alignment: Annotated[bool, Field(description="Whether to tell which words belong to which.")] = False
    scores: Annotated[bool, Field(description="Whether to give tokens and their log-probabilities.")] = False
    stream: bool = False

    @model_validator(mode="after")
    def _one_text_is_streamed(self) -> TranslateRequest:
        if self.stream and isinstance(self.text, list):
            raise ValueError("one text is streamed at a time: give `text` as a string, or leave out `stream`")
        return self


class ScoredToken(Answer):
    """A subword with its leading space, if it has one, and its log-probability."""

    text: str
    score: float


class Hypothesis(Answer):
    """One translation; what was not asked for is null."""

    text: str
    score: float
    tokens: list[ScoredToken] | None
    alignment: Annotated[
        list[tuple[int, int]] | None, Field(description="Pairs of a source word and a target word, from 0.")
    ]


class TranslationDescription(Hypothesis):
    """The best translation, and the `nbest` best, itself among them, if more than one was asked for."""

    nbest: list[Hypothesis] | None


Remarks = Annotated[list[str], Field(description="What was not read as it is, such as texts too long for the model.")]


class TranslateAnswer(Answer):
    """A translation for each text, in order."""

    translations: list[TranslationDescription]
    remarks: Remarks


class AlternativesRequest(Strict):
    """What else could come after a beginning of a translation."""

    model: str | None = model_name("alternatives")
    text: Text
    prefix: Text = ""
    count: Annotated[int, Field(ge=1, le=32), WHOLE] = 8


class Alternative(Answer):
    """A word that could come next, with its leading space, if it has one: `prefix` + `text` is the next prefix."""

    text: str
    probability: float


class AlternativesAnswer(Answer):
    """Words that could come next, the likeliest first."""

    alternatives: list[Alternative]
    remarks: Remarks


class GenerateRequest(Strict):
    """A text to continue."""

    model: str | None = model_name("generate")
    prompt: Text = ""
    max_tokens: (
        Annotated[int, Field(ge=1, json_schema_extra={LIMIT: "tokens"}, description="200 by default."), WHOLE] | None
    ) = None
    temperature: Annotated[float, Field(ge=0, le=100, description="0 takes always the likeliest token.")] = 0.8
    top_k: Annotated[int, Field(ge=1), WHOLE] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED), WHOLE] = 0
    stop: Annotated[list[Annotated[Text, Field(min_length=1)]], Field(max_length=16)] = Field(default_factory=list)
    samples: Annotated[int, Field(ge=1, le=16), WHOLE] = 1
    stream: bool = False
    probabilities: Annotated[bool, Field(description="Whether to give tokens, their probabilities and others'.")] = (
        False
    )


class RunnerUp(Answer):
    """A token that could have stood there."""

    text: str
    probability: float


class GeneratedToken(Answer):
    """What a token added to the text, and its probability; null for what was held back until the end."""

    text: str
    probability: float | None
    runners_up: list[RunnerUp]


class GeneratedSample(Answer):
    """A text that continues the prompt; `tokens` if probabilities were asked for."""

    text: str
    tokens: list[GeneratedToken] | None


class GenerateAnswer(Answer):
    """The samples."""

    samples: list[GeneratedSample]
    remarks: Remarks


class ClassifyTextRequest(Strict):
    """A text, or several, or several pairs of texts, to label."""

    model: str | None = model_name("classify")
    text: Text | Annotated[list[Text | Pair], Field(min_length=1, json_schema_extra=TEXTS)]


class ClassifyImageRequest(Strict):
    """An image to label, at its training's size or at another `resolution` (both sides, or height and width)."""

    model: str | None = model_name("classify_images")
    image: ImageData
    resolution: (
        Annotated[int, Field(ge=1, le=1024), WHOLE]
        | Annotated[list[Annotated[int, Field(ge=1, le=1024), WHOLE]], Field(min_length=2, max_length=2)]
        | None
    ) = None


class LabelResult(Answer):
    """The likeliest label (null for a blank text), and the probabilities of all."""

    label: str | None
    probabilities: dict[str, float]


class ClassifyAnswer(Answer):
    """A result for each input, in order."""

    results: list[LabelResult]
    remarks: Remarks


class TagRequest(Strict):
    """Texts whose words to tag."""

    model: str | None = model_name("tag")
    text: Text | Texts


class TaggedWord(Answer):
    """A word with its likeliest tag."""

    word: str
    tag: str
    probability: float


class TagResult(Answer):
    """The words of a text."""

    words: list[TaggedWord]


class TagAnswer(Answer):
    """A result for each text, in order."""

    results: list[TagResult]
    remarks: Remarks


MaskedText = Annotated[str, Field(json_schema_extra={**TEXT, "pattern": r"\[MASK\]"})]


class FillRequest(Strict):
    """A text with one or more `[MASK]`, or several such texts."""

    model: str | None = model_name("fill")
    text: MaskedText | Annotated[list[MaskedText], Field(min_length=1, json_schema_extra=TEXTS)]
    top: Annotated[int, Field(ge=1, le=100), WHOLE] = 5


class Filling(Answer):
    """A token that may stand in the place of a mask."""

    token: str
    probability: float


class FillResult(Answer):
    """For each mask of a text its likeliest tokens."""

    masks: list[list[Filling]]


class FillAnswer(Answer):
    """A result for each text, in order."""

    results: list[FillResult]
    remarks: Remarks


class EmbedRequest(Strict):
    """Texts to turn into vectors."""

    model: str | None = model_name("embed")
    text: Text | Texts
    normalize: Annotated[bool, Field(description="Whether to give vectors of length 1.")] = True


class EmbedAnswer(Answer):
    """A vector for each text, in order."""

    vectors: list[list[float]]
    remarks: Remarks


class AttentionOfTextRequest(Strict):
    """A text (and for a translation model its translation, if it is not to be the model's own) to look into."""

    model: str | None = model_name("attention")
    text: Text
    target: Text | None = None


class AttentionOfImageRequest(Strict):
    """An image to look into."""

    model: str | None = model_name("attention_of_images")
    image: ImageData


class AttentionAnswer(BaseModel):
    """An attention document: weights for each kind, layer, head, query and key."""

    model_config = ConfigDict(extra="allow")

    format: int
    model: str
    family: str
    sequences: dict[str, list[str]]
    maps: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    image: dict[str, Any] | None


class HealthAnswer(Answer):
    """Whether the server can work."""

    status: str
    workers: int
