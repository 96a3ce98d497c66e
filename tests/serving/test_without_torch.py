"""A server on a machine without torch, and with a model that cannot be loaded."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from safetensors.numpy import load_file, save_file

WITHOUT_TORCH = "import sys\nsys.modules['torch'] = None\n"


@pytest.fixture(scope="module")
def client(start, models, tmp_path_factory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(WITHOUT_TORCH)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
        chosen = [models[name] for name in ("translator", "writer", "classifier", "tagger", "guesser")]
        with start(*chosen, "--workers", "1") as server, server.client as client:
            yield client


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/translate", {"text": ["the dog", "a sea"], "alignment": True, "nbest": 2}),
        ("/api/generate", {"prompt": "the", "max_tokens": 5}),
        ("/api/classify", {"text": "the dog"}),
        ("/api/tag", {"text": "the dog"}),
        ("/api/fill", {"text": "the [MASK]"}),
    ],
)
def test_all_that_computes_is_served(client: httpx.Client, path: str, body: dict) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text


def test_streams_come_piece_by_piece(client: httpx.Client) -> None:
    with client.stream("POST", "/api/generate", json={"prompt": "the", "max_tokens": 7, "stream": True}) as answer:
        assert answer.status_code == 200 and "event: token" in list(answer.iter_lines())


@pytest.mark.parametrize("name", ["translator", "writer", "classifier"])
def test_attention_says_what_is_missing(client: httpx.Client, name: str) -> None:
    refused = client.post("/api/attention", json={"model": name, "text": "the dog"})
    assert refused.status_code == 400
    expected = "looking into attention needs PyTorch, which is not installed: pip install 'heedful[train]'"
    assert refused.json()["error"]["message"] == expected
    refused = client.post("/api/explain", json={"model": name, "text": "the dog"})
    assert refused.status_code == 400
    expected = "needs PyTorch, which is not installed: pip install 'heedful[train]'"
    assert refused.json()["error"]["message"].endswith(expected)
    assert client.get("/healthz").json()["status"] == "ok"


def test_weights_that_are_not_numbers_are_no_model_to_serve(models, tmp_path: Path) -> None:
    for file in models["writer"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({name: tensor + float("nan") for name, tensor in tensors.items()}, tmp_path / "model.safetensors")
    command = [sys.executable, "-m", "heedful", "serve", str(tmp_path), "--port", "0", "--workers", "1"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"heedful: {json.dumps(str(tmp_path))[1:-1]}/model.safetensors")
    assert "the weights are damaged, or training diverged" in line
