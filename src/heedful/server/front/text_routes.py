"""/api/generate, classify, fill, embed, attention and explain."""

from __future__ import annotations

import struct
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from heedful.errors import UserError
from heedful.server.front.desk import TheDesk, errors, event_stream, json_answer
from heedful.server.front.errors import BAD_REQUEST, ApiError
from heedful.server.front.events import EventStream, event
from heedful.server.front.json_bodies import JsonRoute
from heedful.server.front.limits import check_length, check_tokens, listed
from heedful.server.front.looking_schemas import (
    AttentionAnswer,
    AttentionOfImageRequest,
    AttentionRequest,
    ExplainAnswer,
    ExplainOfImageRequest,
    ExplainRequest,
)
from heedful.server.front.pool import Answer
from heedful.server.front.text_schemas import (
    ClassifyAnswer,
    ClassifyImageRequest,
    ClassifyRequest,
    EmbedAnswer,
    EmbedRequest,
    FillAnswer,
    FillRequest,
    GenerateAnswer,
    GenerateRequest,
)
from heedful.tasks.given_texts import refuse_pairs

router = APIRouter(route_class=JsonRoute)
# How many other tokens to give for a place, where probabilities are asked for.
RUNNERS_UP = 5
DEFAULT_TOKENS = 200
# The fields of a body that `GenerationOptions` has by the same names.
SAMPLING = {"temperature", "top_k", "top_p", "seed", "samples", "repetition_penalty", "no_repeat_ngram"}
STREAM = event_stream(
    "The samples; or with `stream` events: a `token` each, then `done` or `error`.", "token", "done", "error"
)


@router.post("/api/generate", response_model=GenerateAnswer, responses={**errors(), **STREAM}, tags=["language models"])
async def generate(body: GenerateRequest, desk: TheDesk) -> Response:
    """Continue a text."""
    check_length([body.prompt, *body.stop], desk.limits)
    options = {
        "max_tokens": check_tokens(body.max_tokens, DEFAULT_TOKENS, desk.limits),
        **body.model_dump(include=SAMPLING),
        "stop": tuple(body.stop),
        "runners_up": RUNNERS_UP if body.probabilities else 0,
    }
    if body.stream:
        return await EventStream.begin(_events(desk.stream(body.model, "generate", [body.prompt], **options)))
    answer = await desk.run(body.model, "generate", [body.prompt], **options)
    samples = [
        {"text": each["text"], "tokens": each["tokens"] if body.probabilities else None} for each in answer.values
    ]
    return json_answer({"samples": samples, "remarks": answer.remarks})


async def _events(stream: AsyncGenerator[Any]) -> AsyncGenerator[bytes]:
    async with aclosing(stream):
        async for value in stream:
            if isinstance(value, Answer):
                yield event({"remarks": value.remarks}, "done")
            else:
                yield event(value, "token")


@router.post("/api/classify", response_model=ClassifyAnswer, responses=errors(), tags=["texts and images"])
async def classify(body: ClassifyRequest, desk: TheDesk) -> Response:
    """Label texts, pairs of texts, or an image."""
    if isinstance(body, ClassifyImageRequest):
        answer = await desk.run(body.model, "classify_images", [body.image], resolution=body.resolution)
    else:
        request = desk.request(body.model, "classify", listed(body.text, desk.limits))
        if not desk.pool.models[request.model].pairs:  # told here, since a worker has only a part of the texts
            try:
                refuse_pairs(request.inputs)
            except UserError as error:
                raise ApiError(BAD_REQUEST, str(error)) from None
        answer = await desk.pool.run(request)
    return json_answer({"results": answer.values, "remarks": answer.remarks})


@router.post("/api/fill", response_model=FillAnswer, responses=errors(), tags=["language models"])
async def fill(body: FillRequest, desk: TheDesk) -> Response:
    """Guess the word at each `[MASK]`."""
    answer = await desk.run(body.model, "fill", listed(body.text, desk.limits), top=body.top)
    return json_answer({"results": answer.values, "remarks": answer.remarks})


@router.post("/api/embed", response_model=EmbedAnswer, responses=errors(), tags=["texts and images"])
async def embed(body: EmbedRequest, desk: TheDesk) -> Response:
    """Turn texts into vectors."""
    answer = await desk.run(body.model, "embed", listed(body.text, desk.limits), normalize=body.normalize)
    vectors = [floats(data) for data, _ in answer.values]
    return json_answer({"vectors": vectors, "remarks": answer.remarks})


def floats(data: bytes) -> list[float]:
    """The numbers of a vector that came as bytes."""
    return list(struct.unpack(f"<{len(data) // 4}f", data))


@router.post("/api/attention", response_model=AttentionAnswer, responses=errors(), tags=["looking inside"])
async def attention(body: AttentionRequest, desk: TheDesk) -> Response:
    """Every attention weight for a text, or an image."""
    if isinstance(body, AttentionOfImageRequest):
        answer = await desk.run(body.model, "attention_of_images", [body.image], resolution=body.resolution)
    else:
        check_length([body.text, body.target or ""], desk.limits)
        options = {} if body.target is None else {"target": body.target}
        answer = await desk.run(body.model, "attention", [body.text], **options)
    return Response(answer.values[0], media_type="application/json")


@router.post("/api/explain", response_model=ExplainAnswer, responses=errors(), tags=["looking inside"])
async def explain(body: ExplainRequest, desk: TheDesk) -> Response:
    """Every step of the computation for a text, or an image, with its numbers; switches change it."""
    options: dict[str, Any] = {"switches": {} if body.switches is None else body.switches.model_dump()}
    if isinstance(body, ExplainOfImageRequest):
        options["resolution"] = body.resolution
        answer = await desk.run(body.model, "explain_images", [body.image], **options)
    else:
        check_length([body.text, body.target or ""], desk.limits)
        answer = await desk.run(body.model, "explain", [body.text], target=body.target, **options)
    return Response(answer.values[0], media_type="application/json")
