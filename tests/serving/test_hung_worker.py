"""A worker that hangs is found out, given up and replaced; the others go on."""

import concurrent.futures
import os
import signal

import httpx
import pytest

from server_process import wait_until

pytestmark = pytest.mark.slow
# Seconds in which a worker is given up, or started again.
PATIENCE = 60


def test_a_worker_that_hangs_is_replaced_and_gets_nothing_to_do_meanwhile(start, models) -> None:
    with start(models["translator"], "--workers", "2", "--timeout", "8") as server, server.client as client:
        hung = server.workers()[0]
        assert client.get("/healthz").json()["status"] == "ok"
        os.kill(hung, signal.SIGSTOP)

        def ask(_: int = 0) -> httpx.Response:
            return client.post("/api/translate", json={"text": "dog"})

        with concurrent.futures.ThreadPoolExecutor() as pool:
            caught = [pool.submit(ask) for _ in range(4)]
            wait_until(lambda: client.get("/healthz").json()["status"] == "degraded", PATIENCE)
            health = client.get("/healthz")
            assert health.status_code == 200 and (health.json()["workers"], health.json()["workers_wanted"]) == (1, 2)
            assert [ask().status_code for _ in range(5)] == [200] * 5
            answers = [each.result() for each in caught]
        # Those that it had were told, in words; those that the other one had were answered.
        assert {answer.status_code for answer in answers} == {200, 503}
        lost = next(answer for answer in answers if answer.status_code == 503)
        assert "did not answer" in lost.json()["error"]["message"] and lost.headers["retry-after"] == "1"
        wait_until(
            lambda: client.get("/healthz").json() == {"status": "ok", "workers": 2, "workers_wanted": 2}, PATIENCE
        )
        assert hung not in server.workers() and len(server.workers()) == 2
        assert [ask().status_code for _ in range(5)] == [200] * 5
        assert server.metric("worker_restarts_total") == 1
        assert "a worker did not answer for" in server.log.read_text()
