"""Rules against repetition, asked for over HTTP, are those of the pipelines."""

from itertools import pairwise

import httpx
import pytest

import heedful
from heedful.decoding.options import DecodingOptions
from heedful.tasks.language_modeling.generation import GenerationOptions

TEXTS = ["a red dog runs", "the sea is blue and the sun is red"]
RULES = [{"repetition_penalty": 1.7}, {"no_repeat_ngram": 2}, {"repetition_penalty": 1.3, "no_repeat_ngram": 3}]


@pytest.fixture(scope="module")
def client(server):
    with server.client as client:
        yield client


def post(client: httpx.Client, path: str, **body) -> dict:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_of_translations(client, models, rules: dict) -> None:
    translator = heedful.load(models["translator"])
    expected = translator.translate(TEXTS, options=DecodingOptions(beam=3, nbest=2, **rules))
    found = post(client, "/api/translate", text=TEXTS, beam=3, nbest=2, scores=True, **rules)["translations"]
    assert [(each["text"], each["score"]) for each in found] == [(each.text, each.score) for each in expected]
    plain = post(client, "/api/translate", text=TEXTS, beam=3, nbest=2)["translations"]
    assert [each["text"] for each in plain] != [each["text"] for each in found]


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("rules", RULES, ids=str)
def test_of_generated_texts(client, models, rules: dict, temperature: float) -> None:
    options = {"max_tokens": 31, "temperature": temperature, "seed": 5, **rules}
    expected = heedful.load(models["writer"]).generate("the red", GenerationOptions(**options))
    found = post(client, "/api/generate", prompt="the red", **options)["samples"]
    assert [each["text"] for each in found] == expected


def test_no_pair_of_tokens_comes_twice(client) -> None:
    body = {"prompt": "the red", "max_tokens": 31, "temperature": 0, "probabilities": True}

    def pairs(**rules) -> list:
        (sample,) = post(client, "/api/generate", **body, **rules)["samples"]
        return list(pairwise(token["text"] for token in sample["tokens"] if "\ufffd" not in token["text"]))

    assert len(set(pairs())) < len(pairs())
    found = [pair for pair in pairs(no_repeat_ngram=2) if all(pair)]
    assert len(set(found)) == len(found) > 5


@pytest.mark.parametrize("path", ["/api/translate", "/api/generate"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("repetition_penalty", 0.5),
        ("repetition_penalty", 101),
        ("repetition_penalty", "1.5"),
        ("no_repeat_ngram", -1),
        ("no_repeat_ngram", 101),
        ("no_repeat_ngram", 1.5),
    ],
)
def test_bounds(client, path: str, name: str, value) -> None:
    text = {"text": "dog"} if path == "/api/translate" else {"prompt": "dog"}
    answer = client.post(path, json={**text, name: value})
    assert answer.status_code == 422 and answer.json()["error"]["message"].startswith(f"{name}: ")


def test_they_are_described(client) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    for request in ("TranslateRequest", "GenerateRequest"):
        described = schemas[request]["properties"]
        assert (described["repetition_penalty"]["minimum"], described["repetition_penalty"]["maximum"]) == (1, 100)
        assert (described["no_repeat_ngram"]["minimum"], described["no_repeat_ngram"]["maximum"]) == (0, 100)
