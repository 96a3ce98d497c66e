"""/api/translate and /api/alternatives."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from heedful.server.front.events import EventStream, event
from heedful.server.front.limits import check_length, listed
from heedful.server.front.pool import Answer
from heedful.server.front.requests import Desk, desk, errors, event_stream, json_answer
from heedful.server.front.translate_schemas import (
    AlternativesAnswer,
    AlternativesRequest,
    TranslateAnswer,
    TranslateRequest,
)

router = APIRouter(tags=["translation"])
TheDesk = Annotated[Desk, Depends(desk)]
STREAM = event_stream(
    "The translations; or with `stream` events: `partial` with the best hypothesis so far, then `done` or `error`.",
    *("partial", "done", "error"),
)


@router.post("/api/translate", response_model=TranslateAnswer, responses={**errors(), **STREAM})
async def translate(body: TranslateRequest, desk: TheDesk) -> Response:
    """Translate texts."""
    texts = listed(body.text, desk.limits)
    check_length([body.prefix], desk.limits)
    options = {
        "beam": max(body.beam, body.nbest),
        "nbest": body.nbest,
        "prefix": body.prefix,
        "alignment": body.alignment,
        "split": body.split,
    }
    if body.stream:
        stream = desk.stream(body.model, "translate", texts, **options)
        return await EventStream.begin(_events(stream, body.scores))
    answer = await desk.run(body.model, "translate", texts, **options)
    return json_answer(
        {"translations": [shown(each, body.scores) for each in answer.values], "remarks": answer.remarks}
    )


async def _events(stream: AsyncGenerator[Any], scores: bool) -> AsyncGenerator[bytes]:
    async with aclosing(stream):
        async for value in stream:
            if isinstance(value, Answer):
                translation = shown(value.values[0], scores)
                yield event({"translation": translation, "remarks": value.remarks}, "done")
            else:
                yield event({"text": value}, "partial")


def shown(translation: dict[str, Any], scores: bool) -> dict[str, Any]:
    """A translation with tokens only where they were asked for."""
    if not scores:
        for each in (translation, *(translation["nbest"] or [])):
            each["tokens"] = None
    return translation


@router.post("/api/alternatives", response_model=AlternativesAnswer, responses=errors())
async def alternatives(body: AlternativesRequest, desk: TheDesk) -> Response:
    """Tell what else could come after a beginning of a translation."""
    check_length([body.text, body.prefix], desk.limits)
    answer = await desk.run(body.model, "alternatives", [body.text], prefix=body.prefix, count=body.count)
    return json_answer({"alternatives": answer.values[0], "remarks": answer.remarks})
