"""What is refused is refused in words that help."""

import json
import os
from collections.abc import Iterator

import httpx
import pytest
import torch
from safetensors.torch import load_file, save_file

# Makes the worker fail at one text, as a fault of the program would.
FAULTY = """
import sys
if "spawn_main" in " ".join(sys.orig_argv):
    from heedful.tasks.translation.pipeline import Translator
    from heedful.tasks.labelling.tagger import Tagger
    prepare, tag = Translator.prepare, Tagger.tag
    def faulty(self, lines, *arguments):
        return prepare(self, lines, *arguments) if "boom" not in lines else {}["inner secret"]
    def faulty_tag(self, texts):
        return tag(self, texts) if "boom" not in texts else {}["inner secret"]
    Translator.prepare, Tagger.tag = faulty, faulty_tag
"""


@pytest.fixture(scope="module")
def client(start, models, tmp_path_factory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "sitecustomize.py").write_text(FAULTY)
    broken = folder / "damaged"
    broken.mkdir()
    for file in models["writer"].iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    tensors = load_file(broken / "model.safetensors")
    # All are numbers, but what becomes of them is none.
    tensors = {name: torch.full_like(tensor, 3e38) for name, tensor in tensors.items()}
    save_file(tensors, broken / "model.safetensors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
        chosen = [models[name] for name in ("translator", "writer", "tagger")]
        with start(*chosen, broken, "--workers", "1") as server, server.client as client:
            client.log = server.log
            yield client
            # The traceback is meant to be there; the fixture is to find none.
            server.log.write_text(server.log.read_text().replace("Traceback", "traceback"))


@pytest.mark.parametrize(("path", "model"), [("/api/translate", "translator"), ("/api/tag", "tagger")])
def test_a_fault_in_a_worker_is_logged_under_the_name_that_the_client_gets(client, path: str, model: str) -> None:
    failed = client.post(path, json={"model": model, "text": ["boom"]})
    assert failed.status_code == 500
    name = failed.headers["x-request-id"]
    assert failed.json()["error"]["message"] == f"a fault of the server's: its log says more (request {name})"
    log = client.log.read_text()
    assert f"request {name} (" in log and "KeyError: 'inner secret'" in log.partition(name)[2]
    assert client.post(path, json={"model": model, "text": ["dog"]}).status_code == 200


def test_a_model_that_computes_no_numbers_is_the_servers_fault_and_is_said(client) -> None:
    failed = client.post("/api/generate", json={"model": "damaged", "prompt": "the"})
    assert failed.status_code == 500
    assert "are not numbers (NaN), or infinite: its weights are damaged" in failed.json()["error"]["message"]
    log = client.log.read_text().partition(f"request {failed.headers['x-request-id']} (generate with damaged)")[2]
    assert "are not numbers (NaN)" in log.splitlines()[0]
    assert client.post("/api/generate", json={"model": "writer", "prompt": "the"}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("POST", "/v1/chat/completions", 404, "/v1/completions"),
        ("POST", "/detect", 404, "/languages"),
        ("GET", "/nowhere", 404, "/openapi.json"),
        ("GET", "/api/translate", 405, "use POST"),
    ],
)
def test_what_is_not_served_is_refused_with_what_to_do(client, method: str, path: str, status: int, words) -> None:
    answer = client.request(method, path, json={"messages": []} if method == "POST" else None)
    assert answer.status_code == status and words in answer.json()["error"]["message"]


def test_html_is_refused_with_what_to_do(client) -> None:
    answer = client.post("/translate", json={"q": "<b>dog</b>", "target": "de", "format": "html"})
    assert answer.status_code == 422 and "take the text out of it" in answer.json()["error"]


@pytest.mark.parametrize("temperature", ["-1", "1e-320", "1e9", "NaN", "Infinity", "-0.0001"])
def test_temperatures_out_of_range_are_refused(client, temperature: str) -> None:
    body = json.dumps({"model": "writer", "prompt": "the", "max_tokens": 3})
    content = f'{body[:-1]}, "temperature": {temperature}}}'
    for path in ("/api/generate", "/v1/completions"):
        answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422 and "temperature" in answer.json()["error"]["message"], answer.text
