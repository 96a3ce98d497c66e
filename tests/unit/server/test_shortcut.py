"""A request gets the same answer on the shorter way as on the framework's."""

import asyncio
import json
import threading

import pytest

from heedful.server.front import app as front
from heedful.server.front import json_bodies
from heedful.server.front.errors import INVALID, ApiError
from heedful.server.front.guard import Guard
from heedful.server.front.pool import Answer
from heedful.server.front.shortcut import Shortcut
from heedful.server.messages import ModelCard, ModelRequest
from heedful.server.settings import Limits, ServerSettings

JSON = "application/json"
HYPOTHESIS = {"text": "Hund", "score": -1.5, "tokens": [], "alignment": None, "pieces": None, "nbest": None}
EXTRA = "{}: Extra inputs are not permitted"
VERBS = ["translate", "alternatives", "classify", "classify_images"]


CARDS = {"m": ModelCard("m", "t", "t", "text", "text", "", "f", 1, "en", "de", None, False, VERBS, "core", "int8")}


class FakePool:
    """Answers at once; some texts bring about errors."""

    def __init__(self) -> None:
        self.settings, self.limits, self.models = ServerSettings({}), Limits(), CARDS

    async def run(self, request: ModelRequest) -> Answer:
        if request.inputs == ["refused"]:
            raise ApiError(INVALID, "refused", {"Retry-After": "7"})
        if request.inputs == ["fault"]:
            raise RuntimeError("a fault")
        value = dict(HYPOTHESIS) if request.verb == "translate" else [{"text": request.verb, "probability": 0.5}]
        return Answer([value], ["a remark"])


async def answer(guard: Guard, path: str, body: bytes, kind: str) -> tuple[int, list, bytes]:
    sent: list[dict] = []
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    parts = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict:
        return next(parts, None) or await asyncio.sleep(60)

    async def send(message: dict) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b"", "root_path": ""}
    try:
        await guard(scope, receive, send)
    except RuntimeError as error:  # the server logs it
        sent.append({"body": repr(error).encode()})
    named = [each for each in sent[0]["headers"] if each[0] != b"x-request-id"]
    return sent[0]["status"], named, b"".join(each.get("body", b"") for each in sent[1:])


@pytest.fixture
def guards(monkeypatch: pytest.MonkeyPatch) -> tuple[Guard, Guard]:
    monkeypatch.setattr("heedful.server.front.errors.secrets.token_hex", lambda count: "abc")
    short = front.build_app(FakePool())
    monkeypatch.setattr(front, "Shortcut", lambda app, routes, desk: Shortcut(app, [], desk))
    return short, front.build_app(FakePool())


REQUESTS = {
    "a text": ("/api/translate", {"text": "dog"}),
    "texts": ("/api/translate", {"text": ["dog"], "beam": 5.0, "scores": True}),
    "a word": ("/api/alternatives", {"text": "dog", "count": 3}),
    "a label": ("/api/classify", {"text": "dog"}),
    "an image": ("/api/classify", {"image": "iVBORw0KGgo="}),
    "an unknown field": ("/api/translate", {"text": "dog", "bean": 5}),
    "no text": ("/api/translate", {}),
    "a wrong type": ("/api/translate", {"text": 5}),
    "neither of two": ("/api/classify", {"txt": "dog"}),
    "both of two": ("/api/classify", {"text": "dog", "image": "iVBORw0KGgo="}),
    "a wrong image": ("/api/classify", {"image": 5}),
    "a list": ("/api/translate", []),
    "nothing": ("/api/translate", None),
    "another model": ("/api/translate", {"text": "dog", "model": "n"}),
    "refused": ("/api/translate", {"text": "refused"}),
    "fault": ("/api/translate", {"text": "fault"}),
    "another path": ("/api/translat", {"text": "dog"}),
}


@pytest.mark.parametrize(("path", "content"), REQUESTS.values(), ids=REQUESTS)
def test_answers_are_the_same(guards: tuple[Guard, Guard], path: str, content: object) -> None:
    body = json.dumps(content).encode()
    short, long = (asyncio.run(answer(guard, path, body, JSON)) for guard in guards)
    assert short == long
    assert guards[0].metrics.requests == guards[1].metrics.requests


@pytest.mark.parametrize("kind", [JSON, "Application/JSON; charset=utf-8", "text/plain", "application/x+json", ""])
@pytest.mark.parametrize(
    "body", [b'{"text": "dog"}', b"\xef\xbb\xbf" + b'{"text": "dog"}', b'{"text": "\xff"}', b"{", b""]
)
def test_answers_to_any_bytes_are_the_same(guards: tuple[Guard, Guard], body: bytes, kind: str) -> None:
    short, long = (asyncio.run(answer(guard, "/api/translate", body, kind)) for guard in guards)
    assert short == long


def test_what_fits_does_not_come_to_the_framework(guards: tuple[Guard, Guard], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastapi.routing.APIRouter.__call__", None)
    status, _, body = asyncio.run(answer(guards[0], "/api/translate", b'{"text": "dog"}', JSON))
    assert status == 200 and json.loads(body)["translations"][0]["text"] == "Hund"


@pytest.mark.parametrize("path", ["/api/translate", "/api/classify", "/v1/completions", "/translate"])
def test_large_bodies_are_parsed_beside_the_event_loop(guards, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def watched(text: str, parse=json_bodies.parse_json) -> object:
        threads.append(threading.current_thread())
        return parse(text)

    monkeypatch.setattr(json_bodies, "parse_json", watched)
    for guard in guards:
        for size, beside in ((11, False), (2**17, True)):
            threads.clear()
            body = {"text": "a" * size, "q": "a" * size, "prompt": "a" * size}
            asyncio.run(answer(guard, path, json.dumps(body).encode(), JSON))
            assert threads and all((each is not threading.main_thread()) == beside for each in threads)


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        (
            "/api/classify",
            {"model": "m", "text": "a", "texte": 1, "z": 2},
            EXTRA.format("texte") + "; " + EXTRA.format("z"),
        ),
        ("/api/classify", {"image": "x", "resolution": 0}, "resolution: Input should be greater than or equal to 1"),
        ("/api/classify", {"image": "x", "text": "a"}, EXTRA.format("text")),
        ("/api/classify", [], "body: Input should be a valid dictionary or object to extract fields from"),
        ("/api/attention", {"model": "m", "text": 5, "target": "rot"}, "text: Input should be a valid string"),
        ("/api/attention", {"image": 5}, "image: Input should be a valid string"),
        ("/api/explain", {"image": "x", "target": "rot"}, EXTRA.format("target")),
    ],
)
def test_of_two_forms_only_the_one_that_is_meant_is_told(guards, path: str, content: object, message: str) -> None:
    status, _, body = asyncio.run(answer(guards[0], path, json.dumps(content).encode(), JSON))
    assert status == 422
    told = json.loads(body)["error"]["message"]
    assert told == message or told.startswith(f"{message}; resolution: Input should be a valid list")


@pytest.mark.parametrize(
    ("path", "name"), [("classify", "Classify"), ("attention", "AttentionOf"), ("explain", "ExplainOf")]
)
def test_both_forms_are_described(guards: tuple[Guard, Guard], path: str, name: str) -> None:
    document = guards[0].app.openapi()
    schema = document["paths"][f"/api/{path}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    forms = [f"{name}TextRequest", f"{name}ImageRequest"]
    assert schema["oneOf"] == [{"$ref": f"#/components/schemas/{form}"} for form in forms]
    assert set(forms) <= set(document["components"]["schemas"])
