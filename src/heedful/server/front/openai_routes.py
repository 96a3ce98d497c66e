"""/v1: what clients of OpenAI's API expect of completions and embeddings."""

from __future__ import annotations

import base64
import math
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from heedful.server.front.desk import TheDesk, check_model, errors, event_stream, json_answer
from heedful.server.front.events import EventStream, event
from heedful.server.front.json_bodies import JsonRoute
from heedful.server.front.limits import check_length, check_tokens, listed
from heedful.server.front.openai_schemas import (
    Completion,
    CompletionRequest,
    EmbeddingRequest,
    Embeddings,
    OpenAIModel,
    OpenAIModels,
)
from heedful.server.front.pool import Answer
from heedful.server.front.schemas import LARGEST_SEED
from heedful.server.front.text_routes import floats

router = APIRouter(tags=["OpenAI"], route_class=JsonRoute)
DEFAULT_TOKENS = 16
STREAM = event_stream("The samples; or with `stream` events, each a completion with what is new, then `[DONE]`.")


def _model(name: str, started: float) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": int(started), "owned_by": "heedful"}


@router.get("/v1/models", response_model=OpenAIModels, responses=errors())
async def models(desk: TheDesk) -> Response:
    """All models that are served."""
    return json_answer({"object": "list", "data": [_model(name, desk.started) for name in desk.pool.models]})


@router.get("/v1/models/{model}", response_model=OpenAIModel, responses=errors())
async def model(model: str, desk: TheDesk) -> Response:
    """One of the models."""
    check_model(desk.pool.models, model)
    return json_answer(_model(model, desk.started))


@router.post("/v1/completions", response_model=Completion, responses={**errors(), **STREAM})
async def completions(body: CompletionRequest, desk: TheDesk) -> Response:
    """Continue texts."""
    prompts = listed(body.prompt, desk.limits)
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
    check_length(stop, desk.limits)
    options = {
        "max_tokens": check_tokens(body.max_tokens, DEFAULT_TOKENS, desk.limits),
        "temperature": 1.0 if body.temperature is None else body.temperature,
        "top_k": None,
        "top_p": body.top_p,
        # Without a seed, clients expect different text each time.
        "seed": uuid.uuid4().int & LARGEST_SEED if body.seed is None else body.seed,
        "samples": body.n or 1,
        "stop": tuple(each for each in stop if each),
        "runners_up": body.logprobs or 0,
    }
    head = {
        "id": f"cmpl-{uuid.uuid4().hex}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": body.model,
    }
    if body.stream:
        with_usage = bool(body.stream_options and body.stream_options.include_usage)
        stream = desk.stream(body.model, "generate", prompts, **options)
        return await EventStream.begin(_events(stream, head, body.logprobs, (body.n or 1) if with_usage else None))
    answer = await desk.run(body.model, "generate", prompts, **options)
    choices = [
        _choice(index, each["text"], each["tokens"], body.logprobs, _reason(each))
        for index, each in enumerate(answer.values)
    ]
    return json_answer({**head, "choices": choices, "usage": _usage(answer.values, body.n or 1)})


async def _events(
    stream: AsyncGenerator[Any], head: dict[str, Any], logprobs: int | None, usage_of: int | None
) -> AsyncGenerator[bytes]:
    offsets: dict[int, int] = {}
    async with aclosing(stream):
        async for value in stream:
            if not isinstance(value, Answer):
                index, text = value["sample"], value["text"]
                choice = _choice(index, text, [value], logprobs, None, offsets.get(index, 0))
                offsets[index] = offsets.get(index, 0) + len(text)
                yield event({**head, "choices": [choice], "usage": None})
                continue
            last = [_choice(index, "", [], None, _reason(each)) for index, each in enumerate(value.values)]
            yield event({**head, "choices": last, "usage": None})
            if usage_of:
                yield event({**head, "choices": [], "usage": _usage(value.values, usage_of)})
            yield event("[DONE]")


def _reason(sample: dict[str, Any]) -> str:
    return "length" if sample["full"] else "stop"


def _choice(
    index: int, text: str, tokens: list[dict[str, Any]], logprobs: int | None, reason: str | None, offset: int = 0
) -> dict[str, Any]:
    choice: dict[str, Any] = {"text": text, "index": index, "logprobs": None, "finish_reason": reason}
    if logprobs is not None:
        choice["logprobs"] = _logprobs(tokens, logprobs, offset)
    return choice


def _logprobs(tokens: list[dict[str, Any]], count: int, offset: int) -> dict[str, Any]:
    offsets = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token["text"])
    likeliest = [
        sorted([(each["text"], each["probability"] or 0.0), *_pairs(each)], key=lambda pair: -pair[1])[:count]
        for each in tokens
    ]
    return {
        "tokens": [each["text"] for each in tokens],
        "token_logprobs": [_log(each["probability"]) for each in tokens],
        "top_logprobs": [{text: _log(share) for text, share in pairs} for pairs in likeliest] if count else None,
        "text_offset": offsets,
    }


def _pairs(token: dict[str, Any]) -> list[tuple[str, float]]:
    return [(each["text"], each["probability"]) for each in token["runners_up"]]


def _log(probability: float | None) -> float | None:
    # A probability too small for its format still has a logarithm.
    return None if probability is None else math.log(max(probability, 1e-300))


def _usage(samples: list[dict[str, Any]], n: int) -> dict[str, int]:
    made = sum(each["generated"] for each in samples)
    read = sum(each["prompt_tokens"] for each in samples[::n])
    return {"prompt_tokens": read, "completion_tokens": made, "total_tokens": read + made}


@router.post("/v1/embeddings", response_model=Embeddings, responses=errors())
async def embeddings(body: EmbeddingRequest, desk: TheDesk) -> Response:
    """Turn texts into vectors."""
    answer = await desk.run(body.model, "embed", listed(body.input, desk.limits), normalize=True)
    as_text = body.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(vector).decode() if as_text else floats(vector),
        }
        for index, (vector, _) in enumerate(answer.values)
    ]
    read = sum(tokens for _, tokens in answer.values)
    usage = {"prompt_tokens": read, "total_tokens": read}
    return json_answer({"object": "list", "data": data, "model": body.model, "usage": usage})
