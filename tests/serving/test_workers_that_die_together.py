"""Workers that die together all come back."""

import os
import signal
import time

import pytest

pytestmark = pytest.mark.slow


def test_workers_that_are_killed_together_are_all_replaced(start, models) -> None:
    with start(models["tagger"], "--workers", "3") as server, server.client as client:
        before = server.workers()
        assert len(before) == 3
        for worker in before:
            os.kill(worker, signal.SIGKILL)
        end = time.monotonic() + 60
        while server.metric("worker_restarts_total") < 3 or client.get("/healthz").json()["status"] != "ok":
            assert time.monotonic() < end, (client.get("/healthz").json(), server.log.read_text())
            time.sleep(0.1)
        assert client.get("/healthz").json() == {"status": "ok", "workers": 3, "workers_wanted": 3}
        now = server.workers()
        assert len(now) == 3 and not set(now) & set(before)
        assert client.post("/api/tag", json={"text": ["dog"] * 6}).status_code == 200
