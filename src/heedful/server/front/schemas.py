"""What clients send to /api and get from it; fields that are not described are refused."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

# The numbers behind these names are those of the running server (see `openapi.py` and `limits.py`).
TEXT = {"x-limit": "characters"}
TEXTS = {"x-limit": "texts"}

Text = Annotated[str, Field(json_schema_extra=TEXT)]
Pair = Annotated[list[Text], Field(min_length=2, max_length=2)]
Texts = Annotated[list[Text], Field(min_length=1, json_schema_extra=TEXTS)]
ModelName = Annotated[
    str | None,
    Field(description="The name of a model; can be left out where one model of the right kind is served."),
]
ImageData = Annotated[
    str,
    Field(min_length=1, description="An image file (PNG, JPEG, ...) as base64, or as a data: URL of it."),
]


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

    model: ModelName = None
    text: Text | Texts
    beam: Annotated[int, Field(ge=1, le=32, description="Hypotheses kept at each step; 1 is greedy search.")] = 5
    nbest: Annotated[int, Field(ge=1, le=32, description="Hypotheses to give; the beam is at least as wide.")] = 1
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

    model: ModelName = None
    text: Text
    prefix: Text = ""
    count: Annotated[int, Field(ge=1, le=32)] = 8


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

    model: ModelName = None
    prompt: Text = ""
    max_tokens: Annotated[int, Field(ge=1, json_schema_extra={"x-limit": "tokens"})] = 200
    temperature: Annotated[float, Field(ge=0, le=100, description="0 takes always the likeliest token.")] = 0.8
    top_k: Annotated[int, Field(ge=1)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    stop: Annotated[list[Annotated[Text, Field(min_length=1)]], Field(max_length=16)] = Field(default_factory=list)
    samples: Annotated[int, Field(ge=1, le=16)] = 1
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

    model: ModelName = None
    text: Text | Annotated[list[Text | Pair], Field(min_length=1, json_schema_extra=TEXTS)]


class ClassifyImageRequest(Strict):
    """An image to label, at its training's size or at another `resolution` (both sides, or height and width)."""

    model: ModelName = None
    image: ImageData
    resolution: (
        Annotated[int, Field(ge=1, le=1024)]
        | Annotated[list[Annotated[int, Field(ge=1, le=1024)]], Field(min_length=2, max_length=2)]
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


class TextsRequest(Strict):
    """A text, or several."""

    model: ModelName = None
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


class FillRequest(Strict):
    """A text with one or more `[MASK]`, or several such texts."""

    model: ModelName = None
    text: Text | Texts
    top: Annotated[int, Field(ge=1, le=100)] = 5


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

    model: ModelName = None
    text: Text | Texts
    normalize: Annotated[bool, Field(description="Whether to give vectors of length 1.")] = True


class EmbedAnswer(Answer):
    """A vector for each text, in order."""

    vectors: list[list[float]]
    remarks: Remarks


class AttentionOfTextRequest(Strict):
    """A text (and for a translation model its translation, if it is not to be the model's own) to look into."""

    model: ModelName = None
    text: Text
    target: Text | None = None


class AttentionOfImageRequest(Strict):
    """An image to look into."""

    model: ModelName = None
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
