"""What clients send to /api/translate and /api/alternatives, and get from them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from heedful.server.front.schemas import WHOLE, Answer, Remarks, Strict, Text, Texts, model_name


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


class ScoredToken(Answer):
    """A subword with its leading space, if it has one, and its log-probability."""

    text: str
    score: float


class TranslatedPiece(Answer):
    """A piece of a text, its translation, and the white space before that."""

    source: str
    text: str
    before: str


class Hypothesis(Answer):
    """One translation; what was not asked for is null. In pieces, its score is the sum of their log-probabilities."""

    text: str
    score: float
    tokens: list[ScoredToken] | None
    alignment: Annotated[
        list[tuple[int, int]] | None, Field(description="Pairs of a source word and a target word, from 0.")
    ]
    pieces: Annotated[
        list[TranslatedPiece] | None, Field(description="The pieces, of a text that was translated in several.")
    ]


class TranslationDescription(Hypothesis):
    """The best translation, and the `nbest` best, itself among them, if more than one was asked for."""

    nbest: list[Hypothesis] | None


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
