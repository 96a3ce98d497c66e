"""Every signal that ends the server is logged, and what is under way is finished first."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import time

import httpx
import pytest

from heedful.machine.signals import ending_signals

LONG = {"prompt": "the", "max_tokens": 20_000, "temperature": 0.0}


@pytest.fixture(autouse=True)
def hangup_ends_processes():
    """A server leaves SIGHUP alone where it is ignored, as under nohup, which tests may run under."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def eventually(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_what_is_under_way_is_finished(start, models, number: signal.Signals) -> None:
    with start(models["writer"], "--workers", "1", "--max-tokens", "20000") as server:
        with concurrent.futures.ThreadPoolExecutor() as pool, server.client as client:
            running = pool.submit(client.post, "/api/generate", json=LONG)
            eventually(lambda: server.metric("running") == 1)
            for process in (*server.workers(), server.process.pid):  # as a terminal tells its whole group
                os.kill(process, number)
            assert running.result().status_code == 200
        assert server.process.wait(30) == 0
        said = [line for line in server.log.read_text().splitlines() if line.startswith(f"heedful: {number.name}")]
        assert said == [f"heedful: {number.name}: new requests are refused, what is under way is finished"]
        with pytest.raises(httpx.ConnectError):
            httpx.get(server.url)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_models_are_loaded_is_one_line(models, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "heedful", "serve", models["writer"], "--port", "0", "--workers", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    children = ["ps", "-ww", "-o", "args=", "--ppid", str(process.pid)]
    eventually(lambda: b"spawn_main" in subprocess.run(children, capture_output=True).stdout)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert said.decode() == f"heedful: {number.name}: the models were not loaded yet\n"
    assert process.returncode == 128 + number


def test_the_end_of_a_terminal_can_be_survived() -> None:
    assert ending_signals() == [signal.SIGTERM, signal.SIGHUP]
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        assert ending_signals() == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGHUP, before)
