import re

from heedful.server.front.metrics import BUCKETS, Metrics
from heedful.server.messages import WorkerState


def test_the_text_is_what_prometheus_reads():
    metrics = Metrics()
    for seconds in (0.004, 0.3, 0.3, 99.0):
        metrics.observe("/api/translate", 200, seconds)
    metrics.observe("other", 404, 0.01)
    text = metrics.text(7, 1, [WorkerState(1, 2, 4, 12_345_678, 2**30), None])
    assert text.endswith("\n")
    for line in text.splitlines():
        assert re.fullmatch(
            r'# (HELP|TYPE) heedful_\w+ .+|heedful_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [\d.e+-]+', line
        )
    assert 'heedful_requests_total{route="/api/translate",status="200"} 4' in text
    counts = re.findall(r'_bucket\{route="/api/translate",le="[^"]+"\} (\d+)', text)
    assert len(counts) == len(BUCKETS) + 1 and sorted(map(int, counts)) == list(map(int, counts)) and counts[-1] == "4"
    assert 'heedful_tokens_total{worker="0"} 12345678' in text and 'worker="1"' not in text
    assert "heedful_queue 7" in text


def test_a_figure_that_is_not_known_is_left_out(monkeypatch):
    monkeypatch.setattr("heedful.server.front.metrics.resident_memory", lambda: None)
    text = Metrics().text(0, 0, [WorkerState(1, 2, 4, 7, None), WorkerState(1, 2, 4, 7, 2**30)])
    found = [line for line in text.splitlines() if line.startswith("heedful_memory_bytes")]
    assert found == [f'heedful_memory_bytes{{worker="1"}} {2**30}'] and "None" not in text
