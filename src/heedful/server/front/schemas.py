"""What bodies have in common; fields that are not described are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ErrorType

from heedful.config import nearest
from heedful.decoding.options import LARGEST_REPETITION_PENALTY, LOWEST_TEMPERATURE
from heedful.tasks.computing import Precision

# Marks that the description of a running server replaces with its own limits and names (see `openapi.py`).
LIMIT, MODELS = "x-limit", "x-models"
TEXT = {LIMIT: "characters"}
# Of a list, only the first item that does not fit is reported: there may be millions.
SEVERAL = Field(min_length=1, fail_fast=True, json_schema_extra={LIMIT: "texts"})


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 5.0 is as whole as 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# Goes after the limits of a number, and so runs before them.
WHOLE = BeforeValidator(_whole)

# Unknown members of a body that are named; where there are more, only the number of members is given.
MOST_UNKNOWN = 16
# Larger whole numbers are not exact in every language's JSON.
LARGEST_SEED = 2**53 - 1

# Below this, only the likeliest token is left, and smaller numbers leave the range of fp32.
LOWEST_TOP_P = 1e-6
# Longer stretches than this do not repeat by chance.
LONGEST_NGRAM = 100


def _can_be_drawn_at(temperature: float) -> float:
    if 0 < temperature < LOWEST_TEMPERATURE:
        raise ValueError(f"it should be 0, for the likeliest text, or at least {LOWEST_TEMPERATURE}")
    return temperature


# Goes after the limits of a temperature, with `zero_or_up_to` for the description.
DRAWN_AT = AfterValidator(_can_be_drawn_at)


def zero_or_up_to(highest: float) -> WithJsonSchema:
    """The description of a temperature."""
    above = {"type": "number", "minimum": LOWEST_TEMPERATURE, "maximum": highest}
    words = "0 takes always the likeliest token."
    return WithJsonSchema({"anyOf": [{"type": "number", "enum": [0]}, above], "description": words})


TopP = Annotated[float, Field(ge=LOWEST_TOP_P, le=1)]
RepetitionPenalty = Annotated[
    float,
    Field(
        ge=1,
        le=LARGEST_REPETITION_PENALTY,
        description="Multiplies the log-probabilities of tokens that are there already; 1 turns it off.",
    ),
]
NoRepeatNgram = Annotated[
    int,
    Field(ge=0, le=LONGEST_NGRAM, description="No so many tokens, one after another, come twice; 0 rules out nothing."),
    WHOLE,
]

Text = Annotated[str, Field(json_schema_extra=TEXT)]
Texts = Annotated[list[Text], SEVERAL]


def model_name(*verbs: str) -> Any:
    """The field that names a model which can do one of these."""
    words = "The name of a model; can be left out where one model of the right kind is served."
    return Field(default=None, description=words, json_schema_extra={MODELS: list(verbs)})


Remarks = Annotated[list[str], Field(description="What was not read as it is, such as texts too long for the model.")]


_KNOWN_ERRORS = frozenset(get_args(ErrorType))


class Strict(BaseModel):
    """A body that holds nothing but what is described, each field of its own type."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _few_members(cls, body: Any) -> Any:
        """Each unknown member is an error of its own, so there must not be millions."""
        if isinstance(body, dict) and len(body) > len(cls.model_fields) + MOST_UNKNOWN:
            raise ValueError(f"the body has {len(body)} members, and at most {len(cls.model_fields)} are described")
        return body

    @model_validator(mode="wrap")
    @classmethod
    def _nearest_names(cls, body: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        """A misspelt field is answered with the field that it may stand for."""
        try:
            return read(body)
        except ValidationError as error:
            names = [field.alias or name for name, field in cls.model_fields.items()]
            left = [name for name in names if not isinstance(body, dict) or name not in body]
            found = [_hinted(each, left) for each in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(cls.__name__, found) from None


def _hinted(error: ErrorDetails, known: list[str]) -> InitErrorDetails:
    """An error of a body; one about an unknown field of its own names the one that is most like it, if any is."""
    kind: str | PydanticCustomError = error["type"]
    message = error["msg"]
    if kind == "extra_forbidden" and len(error["loc"]) == 1:
        hint = nearest(error["loc"][0], known)
        message += f": {hint}" if hint.startswith("did you mean") else ""
    if message != error["msg"] or kind not in _KNOWN_ERRORS:  # the latter come from a body inside this one
        kind = PydanticCustomError("unknown_field", "{message}", {"message": message})
    return InitErrorDetails(type=kind, loc=error["loc"], input=error["input"], ctx=error.get("ctx", {}))


class ResponseBody(BaseModel):
    """What the server answers."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


class ErrorDetail(ResponseBody):
    """What went wrong, by name and in words."""

    type: str
    message: str


class ErrorAnswer(ResponseBody):
    """The answer to a request that was not carried out."""

    error: ErrorDetail


class ModelDescription(ResponseBody):
    """A model that is served."""

    name: str
    task: str
    title: Annotated[str, Field(description="What it does, in words.")]
    takes: Annotated[str, Field(description="The kind of its input, such as text or image.")]
    gives: Annotated[str, Field(description="The kind of its output, such as text, label or spans.")]
    placeholder: Annotated[str, Field(description="What a page says where there is no input yet.")]
    family: str
    parameters: int
    source_language: str | None
    target_language: str | None
    labels: list[str] | None
    pairs: Annotated[bool, Field(description="Whether it labels pairs of texts, too.")]
    verbs: Annotated[list[str], Field(description="What can be asked of it, the main thing first.")]
    engine: Annotated[Literal["core", "torch"], Field(description="What computes: heedful's own engine, or torch.")]
    precision: Annotated[Precision, Field(description="The numbers that it computes with.")]


class ModelsAnswer(ResponseBody):
    """All models that are served."""

    models: list[ModelDescription]


class HealthAnswer(ResponseBody):
    """Whether the server can work, how many workers answer, and how many there are to be."""

    status: Literal["ok", "degraded", "unavailable"]
    workers: int
    workers_wanted: int
