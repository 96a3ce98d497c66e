"""A request as large as the limits allow keeps no other client waiting, and costs no worker."""

import concurrent.futures
import time

import pytest

import heedful

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(start, models):
    with start(models["tagger"], models["translator"], models["classifier"], "--workers", "1") as running:
        yield running


def answered_beside(server, path: str, large: dict, *small: tuple[str, dict]) -> dict:
    """The answer to a large request, which comes after those to several small ones that were sent after it."""
    with server.client as client, concurrent.futures.ThreadPoolExecutor() as pool:
        for other, body in small:
            assert client.post(other, json=body).status_code == 200
        running = pool.submit(client.post, path, json=large, timeout=200)
        time.sleep(0.2)
        asked = 0
        while not running.done() and asked < 5:
            for other, body in small:
                assert client.post(other, json=body).status_code == 200
            asked += not running.done()
        answer = running.result()
    assert asked >= 3 and answer.status_code == 200, (asked, answer.text[:300])
    assert server.metric("worker_restarts_total") == 0
    return answer.json()


SMALL = ("/api/classify", {"text": "a dog", "model": "classifier"}), ("/api/tag", {"text": "a dog", "model": "tagger"})


def test_a_large_request_for_tags_keeps_nobody_waiting(server, models) -> None:
    texts = ["a " * 10_000] * 40 + ["the red dog"]
    answer = answered_beside(server, "/api/tag", {"text": texts, "model": "tagger"}, *SMALL)
    long, short = heedful.load(models["tagger"], "cpu").tag([texts[0], texts[-1]])
    found = [[(word["word"], word["tag"], word["probability"]) for word in each["words"]] for each in answer["results"]]
    wanted = [[(word.word, word.tag, word.probability) for word in each] for each in (long, short)]
    assert all(each == wanted[0] for each in found[:-1]) and found[-1] == wanted[1]


def test_a_large_request_for_translations_keeps_nobody_waiting(server, models) -> None:
    texts = ["dog. " * 4_000] * 128
    with server.client as client, concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(client.post, "/api/translate", json={"text": texts, "model": "translator"}, timeout=20)
        time.sleep(0.5)
        for path, body in (*SMALL, ("/api/translate", {"text": "the sea", "model": "translator"})):
            assert client.post(path, json=body).status_code == 200
        assert not running.done()  # all of them were answered before it
        running.exception()  # the client leaves: it has seen enough
        while server.metric("queue"):
            time.sleep(0.1)
    assert server.metric("worker_restarts_total") == 0


def test_a_translation_in_many_pieces_is_the_pipelines(server, models) -> None:
    texts = ["the sea is blue. a red dog runs. two birds. " * 100, "dog", "the sun. " * 300, " "]
    with server.client as client:
        asked = {"text": texts, "model": "translator", "alignment": True, "nbest": 2}
        found = client.post("/api/translate", json=asked).json()["translations"]
    wanted = heedful.load(models["translator"], "cpu").translate(texts, alignment=True, nbest=2)
    for each, other in zip(found, wanted, strict=True):
        assert (each["text"], each["score"]) == (other.text, other.score)
        assert [tuple(pair) for pair in each["alignment"] or ()] == [*(other.alignment or ())]
        assert [(one["text"], one["score"]) for one in each["nbest"]] == [(one.text, one.score) for one in other.nbest]


def test_a_large_request_for_vectors_is_the_pipelines(server, models) -> None:
    texts = ["a red dog " * 1_900] * 60 + ["the sea", "dog " * 30] * 4
    with server.client as client:
        answer = client.post("/api/embed", json={"text": texts, "model": "classifier"}, timeout=200).json()
    with pytest.warns(UserWarning, match="longer than"):
        assert answer["vectors"] == heedful.load(models["classifier"], "cpu").embed(texts).tolist()
    assert [remark.split()[1] for remark in answer["remarks"]] == [str(number) for number in range(1, 61)]
