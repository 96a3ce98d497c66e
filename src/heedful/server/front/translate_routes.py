"""/api/translate and /api/alternatives: what clients send, and what they get."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field, model_validator
from starlette.responses import Response

from heedful.decoding.options import DEFAULT_BEAM, beyond_beam
from heedful.server.front.desk import TheDesk, errors, event_stream, json_answer
from heedful.server.front.errors import BAD_REQUEST, ApiError
from heedful.server.front.events import EventStream, event
from heedful.server.front.json_bodies import JsonRoute
from heedful.server.front.limits import check_length, listed
from heedful.server.front.pool import Answer
from heedful.server.front.schemas import (
    WHOLE,
    NoRepeatNgram,
    Remarks,
    RepetitionPenalty,
    ResponseBody,
    Strict,
    Text,
    Texts,
    model_name,
)

BEAM = int(DEFAULT_BEAM)  # a plain number, as the description needs it


class TranslateRequest(Strict):
    """Texts to translate; with `stream` one text, whose translation is sent as it grows."""

    model: str | None = model_name("translate")
    text: Text | Texts
    beam: Annotated[int, Field(ge=1, le=32, description="Hypotheses kept at each step; 1 is greedy search."), WHOLE] = (
        BEAM
    )
    nbest: Annotated[int, Field(ge=1, le=32, description="Hypotheses to give, at most as many as `beam`."), WHOLE] = 1
    prefix: Annotated[Text, Field(description="Text that every translation is to begin with.")] = ""
    repetition_penalty: RepetitionPenalty = 1.0
    no_repeat_ngram: NoRepeatNgram = 0
    alignment: Annotated[bool, Field(description="Whether to tell which words belong to which.")] = False
    scores: Annotated[bool, Field(description="Whether to give tokens and their log-probabilities.")] = False
    split: Annotated[
        Literal["auto", "sentences", "none"],
        Field(description="Translate by sentences: texts unlike the training lines (auto), all, or none."),
    ] = "auto"
    stream: bool = False

    @model_validator(mode="after")
    def _one_text_is_streamed(self) -> TranslateRequest:
        if self.stream and isinstance(self.text, list):
            raise ValueError("one text is streamed at a time: give `text` as a string, or leave out `stream`")
        return self


class ScoredToken(ResponseBody):
    """A subword with its leading space, if it has one, and its log-probability."""

    text: str
    score: float


class PieceBody(ResponseBody):
    """A piece of a text, its translation, and the white space before that."""

    source: str
    text: str
    before: str


class HypothesisBody(ResponseBody):
    """One translation; what was not asked for is null. In pieces, its score is the sum of their log-probabilities."""

    text: str
    score: float
    tokens: list[ScoredToken] | None
    alignment: Annotated[
        list[tuple[int, int]] | None, Field(description="Pairs of a source word and a target word, from 0.")
    ]
    pieces: Annotated[
        list[PieceBody] | None, Field(description="The pieces, of a text that was translated in several.")
    ]


class TranslationDescription(HypothesisBody):
    """The best translation, and the `nbest` best, itself among them, if more than one was asked for."""

    nbest: list[HypothesisBody] | None


class TranslateAnswer(ResponseBody):
    """A translation for each text, in order."""

    translations: list[TranslationDescription]
    remarks: Remarks


class AlternativesRequest(Strict):
    """What else could come after a beginning of a translation."""

    model: str | None = model_name("alternatives")
    text: Text
    prefix: Text = ""
    count: Annotated[int, Field(ge=1, le=32), WHOLE] = 8


class Alternative(ResponseBody):
    """A word that could come next, with its leading space, if it has one: `prefix` + `text` is the next prefix."""

    text: str
    probability: float


class AlternativesAnswer(ResponseBody):
    """Words that could come next, the likeliest first."""

    alternatives: list[Alternative]
    remarks: Remarks


router = APIRouter(tags=["translation"], route_class=JsonRoute)
STREAM = event_stream(
    "The translations; or with `stream` events: `partial` with the best hypothesis so far, then `done` or `error`.",
    *("partial", "done", "error"),
)


@router.post("/api/translate", response_model=TranslateAnswer, responses={**errors(), **STREAM})
async def translate(body: TranslateRequest, desk: TheDesk) -> Response:
    """Translate texts."""
    texts = listed(body.text, desk.limits)
    check_length([body.prefix], desk.limits)
    if body.nbest > body.beam:
        raise ApiError(BAD_REQUEST, beyond_beam(body.nbest, body.beam))
    options = {
        "beam": body.beam,
        "nbest": body.nbest,
        "repetition_penalty": body.repetition_penalty,
        "no_repeat_ngram": body.no_repeat_ngram,
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
