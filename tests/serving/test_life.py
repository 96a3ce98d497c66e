"""A server's life: clients that leave, queues that are full, deadlines, workers that die, and the end."""

import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from heedful.cli.serve import serve
from heedful.errors import UserError

# More tokens than are there before a test has done what it is about; the models are small.
LONG = {"prompt": "the", "max_tokens": 1_000_000, "temperature": 0.0, "model": "writer"}
MUCH = ["--max-tokens", "1000000"]


@pytest.fixture(scope="module")
def server(start, models) -> Iterator:
    arguments = ["--workers", "1", "--queue", "7", "--max-texts", "7", *MUCH]
    with start(models["translator"], models["writer"], *arguments) as running:
        yield running


def eventually(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def idle(server) -> bool:
    return server.metric("queue") == server.metric("running") == server.metric("waiting") == server.metric("slots") == 0


def test_a_client_that_leaves_a_stream_frees_its_slot(server) -> None:
    with server.client as client, client.stream("POST", "/api/generate", json={**LONG, "stream": True}) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: token"
        assert server.metric("running") == 1
    eventually(lambda: idle(server))


def test_a_client_that_does_not_wait_for_its_answer_frees_its_slot(server) -> None:
    body = json.dumps(LONG).encode()
    head = "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + body)
        eventually(lambda: server.metric("running") == 1)
    eventually(lambda: idle(server))
    assert server.metric("running") == 0


def test_a_short_text_does_not_wait_for_a_long_one(server) -> None:
    with server.client as client, client.stream("POST", "/api/generate", json={**LONG, "stream": True}) as answer:
        lines = answer.iter_lines()
        next(lines)
        for text in ("dog", "the sea"):
            assert client.post("/api/translate", json={"text": text}).status_code == 200
        short = client.post("/api/generate", json={**LONG, "max_tokens": 3})
        assert short.status_code == 200
        assert server.metric("queue") == 1
    eventually(lambda: idle(server))


def test_a_full_queue_says_so_at_once(server) -> None:
    with server.client as client:
        with client.stream("POST", "/api/generate", json={**LONG, "samples": 7, "stream": True}) as answer:
            lines = answer.iter_lines()
            next(lines)
            refused = client.post("/api/translate", json={"text": "dog"})
            assert refused.status_code == 429 and refused.headers["retry-after"] == "1"
        eventually(lambda: idle(server))
        assert client.post("/api/translate", json={"text": "dog"}).status_code == 200
        refused = client.post("/api/generate", json={**LONG, "samples": 8})
        assert refused.status_code == 400 and "the server takes 7" in refused.json()["error"]["message"]


def test_a_body_without_a_length_is_not_read_to_its_end(server) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(2**12):
            yield b"x" * 2**14

    with contextlib.suppress(httpx.WriteError, httpx.ReadError):  # it may be cut off while it still sends
        answer = httpx.post(f"{server.url}/api/translate", content=endless(), timeout=30)
        assert answer.status_code == 413
    assert server.metric("memory_bytes") < 2**30


def test_a_worker_that_dies_is_replaced(server) -> None:
    (worker,) = server.workers()
    with server.client as client:
        with client.stream("POST", "/api/generate", json={**LONG, "stream": True}) as answer:
            lines = answer.iter_lines()
            next(lines)
            os.kill(worker, signal.SIGKILL)
            *_, name, data, _ = lines
        assert name == "event: error" and json.loads(data.removeprefix("data: "))["error"]["type"] == "unavailable"
        refused = client.post("/api/translate", json={"text": "dog"})
        assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
        eventually(lambda: client.get("/healthz").status_code == 200)
        assert client.post("/api/translate", json={"text": "dog"}).status_code == 200
        assert server.metric("worker_restarts_total") == 1


def test_keys_and_an_end_that_finishes_what_runs(start, models, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("first\n\n second\n", encoding="utf-8-sig")  # as Notepad on Windows can save it
    options = ["--workers", "1", "--api-key-file", tmp_path / "keys", *MUCH]
    with start(models["translator"], models["writer"], *options) as server:
        url, body = f"{server.url}/api/translate", {"text": "dog"}
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-API-Key": "firs"}, {"Authorization": "first"}):
            refused = httpx.post(url, json=body, headers=headers)
            assert refused.status_code == 401 and refused.json()["error"]["type"] == "unauthorized"
        for headers in ({"Authorization": "Bearer first"}, {"X-API-Key": "second"}):
            assert httpx.post(url, json=body, headers=headers).status_code == 200
        form = {"q": "dog", "source": "en", "target": "de"}
        assert httpx.post(f"{server.url}/translate", data=form).status_code == 401
        assert httpx.post(f"{server.url}/translate", data={**form, "api_key": "second"}).status_code == 200
        assert httpx.get(f"{server.url}/metrics").status_code == 401
        assert httpx.get(server.url).status_code == httpx.get(f"{server.url}/healthz").status_code == 200
        key = {"X-API-Key": "first"}
        with concurrent.futures.ThreadPoolExecutor() as pool, httpx.Client(headers=key, timeout=60) as client:
            running = [pool.submit(client.post, f"{server.url}/api/generate", json={**LONG, "max_tokens": 60_000})] * 2
            eventually(lambda: b'heedful_running{worker="0"} 0' not in client.get(f"{server.url}/metrics").content)
            server.process.send_signal(signal.SIGTERM)
            assert [each.result().status_code for each in running] == [200, 200]
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/healthz")


def test_ctrl_c_while_models_are_loaded_is_one_line(models) -> None:
    command = [sys.executable, "-m", "heedful", "serve", models["translator"], "--port", "0", "--workers", "1"]

    def heed_ctrl_c() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # shells let what runs in the background ignore it

    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=heed_ctrl_c)
    children = ["ps", "-ww", "-o", "args=", "--ppid", str(process.pid)]
    eventually(lambda: b"spawn_main" in subprocess.run(children, capture_output=True).stdout)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.strip()) == (130, b"heedful: interrupted")


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(serve, ["x", "--port", port])
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use: choose" in str(result.exception)


def test_a_model_that_is_not_there_is_a_users_mistake(run) -> None:
    assert b"there is no model folder nowhere" in run("serve", "nowhere", "--port", "0", code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a=x", "a=y"], "two models have the name 'a'"),
        (["=x"], "'=x' is not a model"),
        (["x", "--workers", "0"], "--workers is 0, but must be at least 1"),
        (["x", "--timeout", "0"], "--timeout is 0.0, but must be above 0"),
        (["x", "--api-key-file", "nowhere"], "cannot read the API keys in nowhere"),
        (["x", "--queue", "5"], "--max-texts is 128, more than --queue, which is 5"),
        (["x", "--timeout", "nan"], "--timeout is nan, but must be above 0, and finite"),
        (["x", "--timeout", "inf"], "--timeout is inf, but must be above 0, and finite"),
        (["x", "--host", "256.0.0.1"], "cannot listen on 256.0.0.1 port 8000"),
        (["x", "--host", "a" * 70], "choose another --host"),
    ],
)
def test_other_mistakes(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(serve, arguments)
    assert isinstance(result.exception, UserError) and message in str(result.exception)
