"""What the API answers is what the pipelines say."""

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest
from libretranslatepy import LibreTranslateAPI
from PIL import Image

import heedful
from heedful.decoding.options import DecodingOptions
from heedful.tasks.explaining import explained, switches_of
from heedful.tasks.language_modeling.generation import GenerationOptions
from heedful.tasks.translation.pipeline import LongTextWarning

TEXTS = ["a red dog runs", "", "the sea is blue and the sun is red", "two birds by the house"]


@pytest.fixture(scope="module")
def client(server) -> Iterator[httpx.Client]:
    with server.client as client:
        yield client


def post(client: httpx.Client, path: str, status: int = 200, **body):
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def events(client: httpx.Client, path: str, **body) -> list[tuple[str, dict]]:
    with client.stream("POST", path, json={**body, "stream": True}) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        blocks = "".join(answer.iter_text()).strip().split("\n\n")
    parts = [block.split("\n") for block in blocks]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


def test_models(client, models) -> None:
    found = client.get("/api/models").json()["models"]
    assert [each["name"] for each in found] == list(models)
    assert found[0]["task"] == "translation" and found[0]["target_language"] == "de" and found[0]["labels"] is None
    network = heedful.load(models["translator"], engine="torch").model
    assert found[0]["parameters"] == sum(each.numel() for each in network.parameters())
    assert found[2]["labels"] == ["yes", "no", "maybe"]
    assert {each["name"]: (each["engine"], each["precision"]) for each in found} == {
        name: ("torch" if name == "seer" else "core", "fp32") for name in models
    }
    assert [each["name"] for each in found if each["pairs"]] == ["classifier"]


@pytest.mark.parametrize(("beam", "nbest"), [(1, 1), (5, 3)])
def test_translations_are_the_translators_to_the_bit(client, models, beam: int, nbest: int) -> None:
    expected = heedful.load(models["translator"]).translate(TEXTS, beam=beam, nbest=nbest, alignment=True)
    options = {"beam": beam, "nbest": nbest, "alignment": True, "scores": True}
    found = post(client, "/api/translate", text=TEXTS, **options)["translations"]
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours["text"], ours["score"]) == (theirs.text, theirs.score)
        assert [each["text"] for each in ours["tokens"]] == theirs.tokens
        assert [each["score"] for each in ours["tokens"]] == theirs.token_scores[: len(theirs.tokens)]
        assert [tuple(pair) for pair in ours["alignment"] or []] == (theirs.alignment or [])
        assert [each["text"] for each in ours["nbest"] or []] == [each.text for each in theirs.nbest if nbest > 1]
    alone = post(client, "/api/translate", text=TEXTS[0], **options)["translations"]
    assert alone == found[:1]


def test_what_was_not_asked_for_is_null(client) -> None:
    (found,) = post(client, "/api/translate", text="dog")["translations"]
    assert found["tokens"] is found["alignment"] is found["nbest"] is None


def test_a_streamed_translation_grows_to_the_whole_one(client) -> None:
    whole = post(client, "/api/translate", text=TEXTS[2], scores=True)["translations"][0]
    *partials, (last, data) = events(client, "/api/translate", text=TEXTS[2], scores=True)
    assert {name for name, _ in partials} == {"partial"} and last == "done"
    assert data["translation"] == whole
    assert len(partials) > 3 and partials[-1][1]["text"] == whole["text"]


def test_a_long_text_is_translated_in_pieces_with_a_remark(client, models) -> None:
    text = "the red dog is red " * 9
    with pytest.warns(LongTextWarning):
        (expected,) = heedful.load(models["translator"]).translate([text])
    found = post(client, "/api/translate", text=["dog", text])
    assert found["translations"][1]["text"] == expected.text
    assert len(found["remarks"]) == 1 and found["remarks"][0].startswith(
        "text 2 has 45 subwords without a sentence end"
    )
    assert events(client, "/api/translate", text=text)[-1][1]["translation"]["text"] == expected.text


PARAGRAPH = "The red dog runs.  The sea is blue! A house by the sea?"


@pytest.mark.parametrize("split", ["auto", "sentences", "none"])
def test_several_sentences_are_translated_as_the_pipeline_does(client, models, split: str) -> None:
    (expected,) = heedful.load(models["translator"]).translate([PARAGRAPH], split=split, alignment=True)
    (found,) = post(client, "/api/translate", text=[PARAGRAPH], split=split, alignment=True)["translations"]
    assert (found["text"], found["score"]) == (expected.text, expected.score)
    assert [tuple(pair) for pair in found["alignment"]] == expected.alignment
    assert len(found["pieces"] or [None]) == (1 if split == "none" else 3)
    assert events(client, "/api/translate", text=PARAGRAPH, split=split)[-1][1]["translation"]["text"] == expected.text


def test_alternatives_in_a_later_sentence_are_those_of_its_piece(client, models) -> None:
    translator = heedful.load(models["translator"])
    prefix = "A dog runs.  The"
    expected = translator.alternatives(PARAGRAPH, prefix, 5)
    assert [each.text for each in expected] == [
        each.text for each in translator.alternatives("The sea is blue!", "The", 5)
    ]
    found = post(client, "/api/alternatives", text=PARAGRAPH, prefix=prefix, count=5)["alternatives"]
    assert [(each["text"], each["probability"]) for each in found] == [
        (each.text, each.probability) for each in expected
    ]


def test_the_search_of_the_server_is_the_default_everywhere(client) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["TranslateRequest"]["properties"]["beam"]["default"] == DecodingOptions().beam


def test_alternatives_lead_to_the_translations_that_begin_with_them(client, models) -> None:
    translator = heedful.load(models["translator"])
    found = post(client, "/api/alternatives", text=TEXTS[0], prefix="the", count=5)["alternatives"]
    assert [(each.text, each.probability) for each in translator.alternatives(TEXTS[0], "the", 5)] == [
        (each["text"], each["probability"]) for each in found
    ]
    shares = [each["probability"] for each in found]
    assert shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 1
    prefix = "the" + found[1]["text"]
    again = post(client, "/api/translate", text=TEXTS[0], prefix=prefix)["translations"][0]["text"]
    assert again.startswith(prefix)


def test_generated_text_is_the_pipelines(client, models) -> None:
    writer = heedful.load(models["writer"])
    options = {"max_tokens": 61, "temperature": 0.9, "top_p": 0.95, "seed": 5, "samples": 3}
    expected = writer.generate("the red", GenerationOptions(**options))
    found = post(client, "/api/generate", prompt="the red", probabilities=True, **options)["samples"]
    assert [each["text"] for each in found] == expected
    assert all("".join(token["text"] for token in each["tokens"]) == each["text"] for each in found)
    token = found[0]["tokens"][0]
    shares = [token["probability"], *(each["probability"] for each in token["runners_up"])]
    assert len(shares) == 6 and sum(shares) < 1 and shares[1:] == sorted(shares[1:], reverse=True)
    streamed = events(client, "/api/generate", prompt="the red", **options)
    for number in range(3):
        assert "".join(data["text"] for name, data in streamed[:-1] if data["sample"] == number) == expected[number]
    assert streamed[-1][0] == "done"


def test_a_prompt_that_is_longer_than_the_context_is_remarked_on(client, server) -> None:
    body = {"prompt": "☃" * 30, "max_tokens": 1}
    remarks = ["text 1 has 90 tokens, but the model's context holds 43: only the last 21 are used"]
    assert post(client, "/api/generate", **body)["remarks"] == remarks
    assert events(client, "/api/generate", **body)[-1] == ("done", {"remarks": remarks})
    post(client, "/v1/completions", model="writer", **body)
    assert "Warning" not in server.log.read_text()


def test_a_stop_string_ends_a_sample(client) -> None:
    whole = post(client, "/api/generate", prompt="the", seed=3, max_tokens=37)["samples"][0]["text"]
    stop = whole[len(whole) // 2 :][:2]
    assert (
        post(client, "/api/generate", prompt="the", seed=3, max_tokens=37, stop=[stop])["samples"][0]["text"]
        == whole[: whole.index(stop)]
    )


def test_labels_tags_guesses_and_vectors(client, models) -> None:
    texts = ["red dog", "the sea is blue"]
    found = post(client, "/api/classify", text=[*texts, ["a dog", "a house"]])["results"]
    expected = heedful.load(models["classifier"]).classify([*texts, ("a dog", "a house")])
    assert [(each["label"], each["probabilities"]) for each in found] == [(e.label, dict(e.ranking)) for e in expected]
    found = post(client, "/api/tag", text=texts)["results"]
    expected = heedful.load(models["tagger"]).tag(texts)
    assert [[tuple(word.values()) for word in each["words"]] for each in found] == [
        [(word.word, word.tag, word.probability) for word in words] for words in expected
    ]
    found = post(client, "/api/fill", text="the [MASK] is [MASK]", top=3)["results"][0]["masks"]
    expected = heedful.load(models["guesser"]).fill("the [MASK] is [MASK]", 3)
    assert [[each["token"] for each in group] for group in found] == [[e.token for e in group] for group in expected]
    found = post(client, "/api/embed", model="tagger", text=texts)["vectors"]
    assert np.array_equal(np.array(found, np.float32), heedful.load(models["tagger"]).embed(texts))


def test_images(client, models, tmp_path: Path) -> None:
    image = Image.fromarray(np.random.default_rng(1).integers(0, 256, (19, 23, 3), np.uint8))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    encoded = base64.b64encode(buffer.getvalue()).decode()
    for resolution in (None, 29, [13, 31]):
        (expected,) = heedful.load(models["seer"]).classify(
            [image], tuple(resolution) if isinstance(resolution, list) else resolution
        )
        found = post(client, "/api/classify", image=f"data:image/png;base64,{encoded}", resolution=resolution)[
            "results"
        ]
        assert found == [{"label": expected.label, "probabilities": dict(expected.ranking)}]
    (tmp_path / "image.png").write_bytes(buffer.getvalue())
    for wrong in (str(tmp_path / "image.png"), encoded[:40], "AAAA"):
        assert "image" in post(client, "/api/classify", 400, image=wrong)["error"]["message"]


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("translator", {"text": "a red dog"}),
        ("translator", {"text": "a red dog", "target": "the sea"}),
        ("writer", {"text": "the red", "target": " dog"}),
        ("classifier", {"text": "a dog", "target": "a house"}),
        ("tagger", {"text": "the sea is blue"}),
        ("guesser", {"text": "the [MASK] is red"}),
    ],
)
def test_attention_is_that_of_the_pipeline(client, models, name: str, inputs: dict[str, str]) -> None:
    expected = heedful.load(models[name]).attention(**inputs).to_json()
    assert post(client, "/api/attention", model=name, **inputs) == {**expected, "remarks": []}


@pytest.mark.parametrize(
    ("name", "inputs", "switches"),
    [
        ("translator", {"text": "a red dog", "target": "the sea"}, {"scaling": False}),
        ("writer", {"text": "the red"}, {"mask": False, "positions": False, "temperature": 0.5}),
        ("classifier", {"text": "a dog", "target": "a house"}, None),
        ("tagger", {"text": "the sea"}, {"head_off": {"attention": "blocks.1.attention", "head": 2}}),
    ],
)
def test_explanations_are_those_of_the_pipeline(client, models, name: str, inputs: dict, switches: dict | None) -> None:
    text, target = inputs["text"], inputs.get("target")
    expected = explained(heedful.load(models[name]), text, switches_of(switches or {}), target=target).to_json()
    found = post(client, "/api/explain", model=name, switches=switches, **inputs)
    assert found == {**json.loads(json.dumps(expected)), "remarks": []}
    wrong = {"head_off": {"attention": "blocks.9.attention", "head": 0}}
    error = post(client, "/api/explain", 400, model=name, switches=wrong, **inputs)["error"]["message"]
    assert error.startswith("there is no attention 'blocks.9.attention'")


def test_attention_of_images_at_any_resolution(client, models) -> None:
    image = Image.fromarray(np.random.default_rng(2).integers(0, 256, (19, 23, 3), np.uint8))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    seer, encoded = heedful.load(models["seer"]), base64.b64encode(buffer.getvalue()).decode()
    for resolution in (None, 29, [13, 31]):
        size = tuple(resolution) if isinstance(resolution, list) else resolution
        found = post(client, "/api/attention", image=encoded, resolution=resolution)
        assert found == {**seer.attention(image, size).to_json(), "remarks": []}
    for path in ("/api/attention", "/api/classify"):
        error = post(client, path, 400, image=encoded, resolution=1024)["error"]["message"]
        assert error == "at this resolution an image has 52,480 patches, and the server takes at most 4,096"


def test_attention_tells_what_was_not_read(client) -> None:
    found = post(client, "/api/attention", model="classifier", text="dog " * 80)
    assert found["remarks"] == ["the text is longer than the 61 tokens that the model takes: its middle was not read"]
    error = post(client, "/api/attention", 400, model="translator", text="☃" * 500)["error"]["message"]
    assert error.startswith(
        "there are 13,518,006 attention weights, and the server gives at most 8,388,608: send something shorter"
    )


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (b'{"text": ', 422, "the body is not valid JSON, from character 10 on"),
        (b'{"text": "\xff"}', 422, "the body is not valid UTF-8, from byte 11 on"),
        (b'{"text": ' + b"[" * 10**5, 422, "the body cannot be read: it is nested too deeply"),
        (b'{"text": [' + b"1," * 10**5 + b"1]}", 422, "text: Input should be a valid string; text.0: Input should"),
        (
            b'{"text": "", %s}' % b",".join(b'"%d": 1' % number for number in range(10**4)),
            422,
            "body: Value error, the body has 10001 members, and at most 11 are described",
        ),
        (b'{"text": "dog", "model": "%s"}' % (b"x" * 10**5), 404, "there is no model 'xxxx"),
    ],
)
def test_bodies_that_are_no_request(client, content: bytes, status: int, message: str) -> None:
    answer = client.post("/api/translate", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == status and answer.json()["error"]["message"].startswith(message)
    assert len(answer.content) < 3000
    wrong = client.post("/api/translate", content=b'{"text": "dog"}', headers={"content-type": "text/plain"})
    assert "Content-Type: application/json" in wrong.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/api/translate", {"text": "dog", "model": "nobody"}, 404, "the models are translator, writer, classifier"),
        (
            "/api/translate",
            {"text": "dog", "model": "writer"},
            400,
            "writer is not a model that translates: try translator",
        ),
        (
            "/api/translate",
            {"text": "dog", "beem": 5},
            422,
            "beem: Extra inputs are not permitted: did you mean 'beam'?",
        ),
        ("/api/translate", {"text": "dog", "beam": 0}, 422, "beam: Input should be greater than or equal to 1"),
        ("/api/translate", {"text": ["dog"], "stream": True}, 422, "one text is streamed at a time"),
        ("/api/translate", {"text": ["dog"] * 30}, 422, "30 texts in one request: the server takes 29"),
        ("/api/translate", {"text": "dog " * 250}, 422, "a text has 1000 characters: the server takes 997"),
        (
            "/api/translate",
            {"text": "dog", "prefix": "the red dog " * 20},
            400,
            "the prefix has 60 subwords, more than the 41",
        ),
        ("/api/translate", {"text": "dog", "beam": 3, "nbest": 5}, 400, "a beam of 3 holds at most 3 hypotheses"),
        ("/api/generate", {"max_tokens": 98}, 422, "max_tokens is 98: the server generates 97 at most"),
        ("/api/embed", {"text": "dog"}, 400, 'set "model" to one of classifier, tagger, guesser'),
        ("/api/fill", {"text": "no mask"}, 400, "the text has no [MASK]"),
        ("/api/classify", {"text": "x" * 2**20}, 413, "the request is larger than 1048576 bytes"),
        ("/v1/completions", {"model": "writer", "echo": True}, 422, "echo: Value error, the prompt is not sent back"),
        ("/v1/completions", {"model": "writer", "echo": 0}, 422, "echo: Input should be a valid boolean"),
        ("/v1/completions", {"model": "writer", "best_of": True}, 422, "best_of: Input should be a valid integer"),
        ("/v1/completions", {"model": "writer", "presence_penalty": 0.5}, 422, "/api/generate has repetition_penalty"),
        ("/v1/embeddings", {"model": "writer", "input": "dog"}, 400, "writer is not a model that embeds texts"),
    ],
)
def test_mistakes(client, path: str, body: dict, status: int, message: str) -> None:
    error = post(client, path, status, **body)["error"]
    assert message in error["message"] and error["type"]


def test_pages_and_headers(client) -> None:
    for path, status in [("/", 200), ("/static/../app.py", 404), ("/static/%2e%2e%2fapp.py", 404), ("/healthz", 200)]:
        answer = client.get(path)
        assert answer.status_code == status
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert answer.headers["x-content-type-options"] == "nosniff" and "server" not in answer.headers
    assert client.get("/nowhere").json()["error"]["type"] == "not_found"
    assert client.get("/api/translate").status_code == client.head("/api/translate").status_code == 405
    assert client.head("/healthz").status_code == 200
    assert client.get("/static/app.js/").status_code == 404


def test_openais_client_works_unmodified(server, models) -> None:
    writer, tagger = heedful.load(models["writer"]), heedful.load(models["tagger"])
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == list(models)
        assert client.models.retrieve("writer").owned_by == "heedful"
        options = {"model": "writer", "prompt": ["the", "a red"], "max_tokens": 19, "seed": 7, "temperature": 0.8}
        found = client.completions.create(**options, n=2, logprobs=2)
        expected = writer.generate(["the", "a red"], GenerationOptions(19, 0.8, seed=7, samples=2))
        assert [choice.text for choice in found.choices] == [text for texts in expected for text in texts]
        assert "".join(found.choices[0].logprobs.tokens) == found.choices[0].text
        assert all(len(each) == 2 for each in found.choices[0].logprobs.top_logprobs[:-1])
        assert found.usage.prompt_tokens == sum(len(writer.tokenizer.encode(text)) for text in ("the", "a red"))
        streamed = client.completions.create(**options, stream=True, stream_options={"include_usage": True})
        chunks = list(streamed)
        assert chunks[-1].usage.completion_tokens > 9
        assert (
            "".join(chunk.choices[0].text for chunk in chunks[:-1] if chunk.choices[0].index == 1)
            == writer.generate(["the", "a red"], GenerationOptions(19, 0.8, seed=7))[1][0]
        )
        texts = ["red dog", "the sea"]
        for encoding in ({}, {"encoding_format": "float"}):
            vectors = client.embeddings.create(model="tagger", input=texts, **encoding).data
            assert np.allclose([each.embedding for each in vectors], tagger.embed(texts), atol=1e-7)
        with pytest.raises(openai.NotFoundError, match="there is no model 'gpt-9' here"):
            client.completions.create(model="gpt-9", prompt="x")


def test_libretranslates_client_works_unmodified(server, client, models) -> None:
    api = LibreTranslateAPI(server.url)
    (expected,) = heedful.load(models["translator"]).translate(["a red dog & <b>"])
    assert api.translate("a red dog & <b>", "en", "de") == expected.text
    assert api.languages()[0] == {"code": "en", "name": "English", "targets": ["de"]}
    found = post(client, "/translate", q=["dog", "a red dog & <b>"], source="auto", target="de", alternatives=2)
    assert found["translatedText"][1] == expected.text
    assert [len(each) for each in found["alternatives"]] == [2, 2]
    most = post(client, "/translate", q=["dog", "a red dog & <b>"], source="en", target="de", alternatives=9)
    assert most["translatedText"] == found["translatedText"]  # no wider beam, so no other best
    assert [each[:2] for each in most["alternatives"]] == found["alternatives"]
    assert [len(each) for each in most["alternatives"]] == [4, 4]
    assert "the languages are: en to de" in post(client, "/translate", 400, q="dog", source="en", target="fr")["error"]
    assert client.post("/translate", content=b"q", headers={"content-type": "text/plain"}).status_code == 415
    assert client.post("/translate", data={"q": ["x"] * 70_000, "target": "de"}).status_code == 422
    assert post(client, "/translate", 422, q=[1, 2], target="de")["error"].endswith(
        "q.0: Input should be a valid string"
    )


def test_a_temperature_that_no_sample_can_be_drawn_at_is_refused(client) -> None:
    answer = client.post("/api/generate", json={"prompt": "the red", "temperature": 1e-40})
    assert answer.status_code in (400, 422) and "temperature" in answer.text


def test_a_pair_for_a_model_of_single_texts_is_named_by_its_place_in_the_request(
    start, single_text_classifier: Path
) -> None:
    with start(single_text_classifier, "--workers", "2") as running, running.client as client:
        texts = ["a red dog"] * 17
        assert len(post(client, "/api/classify", text=texts)["results"]) == 17
        said = post(client, "/api/classify", 400, text=[*texts, ["dog", "sea"]])["error"]["message"]
        assert said == "text 18 is a pair, but this model takes single texts: give it as one string"
