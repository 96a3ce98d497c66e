"""What clients of OpenAI's completions and embeddings send and get."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from heedful.server.front.schemas import (
    DRAWN_AT,
    LARGEST_SEED,
    LIMIT,
    MODELS,
    WHOLE,
    ResponseBody,
    Strict,
    Text,
    Texts,
    TopP,
    zero_or_up_to,
)


def _no_penalty(value: Any) -> Any:
    """OpenAI subtracts its penalties from logits, which is not what `repetition_penalty` does."""
    if isinstance(value, int | float) and value:
        raise ValueError("this penalty is not supported: /api/generate has repetition_penalty and no_repeat_ngram")
    return value


def _no_echo(value: bool) -> bool:
    if value:
        raise ValueError("the prompt is not sent back")
    return value


NO_PENALTY, NO_ECHO = BeforeValidator(_no_penalty), AfterValidator(_no_echo)


class CompletionRequest(Strict):
    """Text to continue; fields that only other servers heed must have the value that asks for nothing."""

    model: Annotated[str, Field(json_schema_extra={MODELS: ["generate"]})]
    prompt: Text | Texts = ""
    max_tokens: Annotated[int, Field(ge=1, json_schema_extra={LIMIT: "tokens"}), WHOLE] | None = None
    temperature: Annotated[float, Field(ge=0, le=2), DRAWN_AT, zero_or_up_to(2)] | None = 1.0
    top_p: TopP | None = None
    n: Annotated[int, Field(ge=1, le=16), WHOLE] | None = 1
    stop: Text | Annotated[list[Text], Field(max_length=16)] | None = None
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED), WHOLE] | None = None
    logprobs: Annotated[int, Field(ge=0, le=5), WHOLE] | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    user: Annotated[str | None, Field(description="Has no effect.")] = None
    echo: Annotated[bool, NO_ECHO, Field(json_schema_extra={"const": False})] | None = False
    suffix: Annotated[None, Field(description="Text is continued at its end only.")] = None
    best_of: Annotated[int, Field(ge=1, le=1, description="All samples are given."), WHOLE] | None = None
    presence_penalty: Annotated[float, Field(ge=0, le=0), NO_PENALTY] | None = 0.0
    frequency_penalty: Annotated[float, Field(ge=0, le=0), NO_PENALTY] | None = 0.0


class StreamOptions(Strict):
    """What a stream tells besides."""

    include_usage: bool | None = False
    include_obfuscation: Annotated[bool | None, Field(description="Has no effect.")] = None


class Logprobs(ResponseBody):
    """Tokens, their log-probabilities, and those of the likeliest in their places."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float]] | None
    text_offset: list[int]


class CompletionChoice(ResponseBody):
    """One sample, and whether it came to its end (`stop`) or to that of its room (`length`)."""

    text: str
    index: int
    logprobs: Logprobs | None
    finish_reason: Literal["stop", "length"] | None


class Usage(ResponseBody):
    """Tokens read and made."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completion(ResponseBody):
    """The samples of all prompts."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | None


class EmbeddingRequest(Strict):
    """Texts to turn into vectors."""

    model: Annotated[str, Field(json_schema_extra={MODELS: ["embed"]})]
    input: Text | Texts
    encoding_format: Literal["float", "base64"] = "float"
    user: Annotated[str | None, Field(description="Has no effect.")] = None


class Embedding(ResponseBody):
    """A vector: numbers, or its 32-bit floats (little-endian) as base64."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingUsage(ResponseBody):
    """Tokens read."""

    prompt_tokens: int
    total_tokens: int


class Embeddings(ResponseBody):
    """A vector for each text, in order."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage


class OpenAIModel(ResponseBody):
    """A model that is served."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class OpenAIModels(ResponseBody):
    """All models that are served."""

    object: Literal["list"]
    data: list[OpenAIModel]


CompletionRequest.model_rebuild()
