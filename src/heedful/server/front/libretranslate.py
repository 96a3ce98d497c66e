"""/translate and /languages, as clients of LibreTranslate expect them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, unquote_plus

from fastapi import APIRouter
from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from heedful.decoding.options import DEFAULT_BEAM
from heedful.server.front.desk import TheDesk, errors, json_answer
from heedful.server.front.errors import BAD_REQUEST, INVALID, UNSUPPORTED, ApiError, misfits
from heedful.server.front.json_bodies import json_of, parsed
from heedful.server.front.keys import Keys, unauthorized
from heedful.server.front.limits import listed
from heedful.server.front.schemas import WHOLE, ErrorDetail, ResponseBody, Strict, Text, Texts
from heedful.server.messages import ModelCard

router = APIRouter(tags=["LibreTranslate"])
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
# A form is parsed before its texts can be counted.
MOST_FORM_FIELDS = 2**16
# Where a body may have its key, and how many such places are tried.
KEY = re.compile(rb'"api_key"\s*:\s*(?P<json>"(?:[^"\\]|\\.){0,1000}")|(?:^|&)api_key=(?P<form>[^&]{0,3000})')
MOST_GUESSES = 4
# A mark that the description of a running server replaces with its languages.
LANGUAGES = "x-languages"

# English names of languages, by the codes of ISO 639.
NAMES = {
    "ar": "Arabic", "az": "Azerbaijani", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech",
    "da": "Danish", "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish",
    "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish",
    "gl": "Galician", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "ko": "Korean",
    "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ms": "Malay", "mt": "Maltese", "nb": "Norwegian Bokmål",
    "nl": "Dutch", "nn": "Norwegian Nynorsk", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish",
    "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian",
    "ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip


def _text_only(value: Any) -> Any:
    if value == "html":
        raise ValueError(
            "HTML is not translated here, since its tags would be taken for words: take the text out of it, send that "
            'with "format": "text" (several texts as a list), and put the translations in its place'
        )
    return value


class LibreRequest(Strict):
    """A text, or several, to translate from one language to another; the source may be `auto`."""

    q: Text | Texts
    source: Annotated[str, Field(json_schema_extra={LANGUAGES: "source"})] = "auto"
    target: Annotated[str, Field(json_schema_extra={LANGUAGES: "target"})]
    format: Annotated[Literal["text"], BeforeValidator(_text_only)] = "text"
    alternatives: Annotated[
        int, Field(ge=0, le=16, description=f"Other translations to give; there are {DEFAULT_BEAM - 1} at most."), WHOLE
    ] = 0
    api_key: str | None = None


class LibreTranslation(BaseModel):
    """The translation, or one for each text; and others, where they were asked for."""

    translatedText: str | list[str]
    alternatives: list[str] | list[list[str]] | None = None


class LibreLanguage(ResponseBody):
    """A language that texts can be translated from, and those to which."""

    code: str
    name: str
    targets: list[str]


class LibreError(ResponseBody):
    """What went wrong, in words."""

    error: str | ErrorDetail


BODY = {
    "required": True,
    "content": {kind: {"schema": {"$ref": "#/components/schemas/LibreRequest"}} for kind in (JSON, FORM)},
}


@router.post(
    "/translate",
    response_model=LibreTranslation,
    responses=errors(415, model=LibreError),
    openapi_extra={"requestBody": BODY},
)
async def translate(request: Request, desk: TheDesk) -> Response:
    """Translate texts."""
    try:
        body = await _checked_body(request, Keys(desk.pool.settings.keys))
        texts = listed(body.q, desk.limits)
        model = _model(language_pairs(desk.pool.models.values()), body.source, body.target)
        # Never a wider beam: the best translation must be the same, however many others are asked for.
        nbest = min(1 + body.alternatives, DEFAULT_BEAM)
        options = {"beam": DEFAULT_BEAM, "nbest": nbest, "prefix": "", "alignment": False, "split": "auto"}
        answer = await desk.run(model, "translate", texts, **options)
    except ApiError as error:
        return _refusal(error)
    found = [each["text"] for each in answer.values]
    others = [[other["text"] for other in (each["nbest"] or [])[1:]] for each in answer.values]
    several = isinstance(body.q, list)
    shown: dict[str, Any] = {"translatedText": found if several else found[0]}
    if body.alternatives:
        shown["alternatives"] = others if several else others[0]
    return json_answer(shown)


def _refusal(error: ApiError) -> Response:
    return json_answer({"error": error.message}, error.kind.status, error.headers)


async def _checked_body(request: Request, keys: Keys) -> LibreRequest:
    """The body of a request whose key is right."""
    content_type, content = request.headers.get("content-type", ""), await request.body()
    # Nobody without a key may make the server parse anything.
    if not request.state.authorized and not any(map(keys.accept, _possible_keys(content))):
        raise unauthorized()
    body = await parsed(partial(_body, content_type), content)
    if not request.state.authorized and not keys.accept(body.api_key or ""):
        raise unauthorized()
    return body


def _possible_keys(content: bytes) -> Iterator[str]:
    """What stands where a body may have its key, in a form or in JSON."""
    for match in islice(KEY.finditer(content), MOST_GUESSES):
        try:
            yield json.loads(match["json"]) if match["json"] else unquote_plus(match["form"].decode())
        except ValueError:
            continue


def _body(content_type: str, body: bytes) -> LibreRequest:
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind == JSON:
            return LibreRequest.model_validate(json_of(body))
        if kind == FORM:
            fields = parse_qs(
                body.decode(),
                keep_blank_values=True,
                strict_parsing=bool(body),
                errors="strict",
                max_num_fields=MOST_FORM_FIELDS,
            )
            single = {name: values[0] if len(values) == 1 else values for name, values in fields.items()}
            return LibreRequest.model_validate(single, strict=False)
    except ValidationError as error:
        raise ApiError(INVALID, misfits(error.errors())) from None
    except ValueError:
        raise ApiError(INVALID, f"the body is not valid {kind}") from None
    raise ApiError(UNSUPPORTED, f"send {JSON} or {FORM}")


def language_pairs(models: Iterable[ModelCard]) -> dict[tuple[str, str], str]:
    """Source and target language -> the first model that translates between them."""
    pairs: dict[tuple[str, str], str] = {}
    for card in models:
        if "translate" in card.verbs and card.source_language and card.target_language:
            pairs.setdefault((card.source_language, card.target_language), card.name)
    return pairs


def _model(pairs: dict[tuple[str, str], str], source: str, target: str) -> str:
    fitting = [name for (its_source, its_target), name in pairs.items() if its_target == target]
    if source == "auto" and len(fitting) == 1:
        return fitting[0]
    if (source, target) in pairs:
        return pairs[source, target]
    if source == "auto" and fitting:
        froms = ", ".join(each for each, its_target in pairs if its_target == target)
        raise ApiError(
            BAD_REQUEST,
            f"source is auto, but {len(fitting)} models translate to {target}: give source, one of {froms}",
        )
    known = ", ".join(f"{a} to {b}" for a, b in pairs) or "none"
    raise ApiError(BAD_REQUEST, f"no model translates from {source} to {target}; the languages are: {known}")


@router.get("/languages", response_model=list[LibreLanguage], responses=errors(model=LibreError))
async def languages(desk: TheDesk) -> Response:
    """The languages of all translation models that know theirs."""
    targets: dict[str, list[str]] = {}
    for source, target in language_pairs(desk.pool.models.values()):
        targets.setdefault(source, []).append(target)
        targets.setdefault(target, [])
    return json_answer([{"code": code, "name": NAMES.get(code, code), "targets": to} for code, to in targets.items()])
