"""The load of servers: what the rounds of a setup come to, and the earlier figures that stay beside them."""

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def server_load(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("server_load")


def test_a_setup_is_compared_with_the_command_round_by_round(server_load: ModuleType) -> None:
    setup = server_load.set_up("core:int8:2", 2)
    assert setup.computing == ["--workers", "2", "--engine", "core", "--precision", "int8"]
    assert setup.clients == 64 and server_load.set_up("core:int8:16", 2).clients == 16
    setup.offline = [100.0, 50.0, 200.0]
    latencies = [[0.1, 0.2], [0.3, 0.4], [0.5, 9.0]]
    setup.rounds = [
        {"rate": rate, "statuses": {"200": 2 - failed, "503": failed}, "latencies": each, "busy": 0.0001 * rate}
        for rate, failed, each in zip([45.0, 25.0, 50.0], [0, 1, 0], latencies, strict=True)
    ]
    found = {name: value for name, value, _, _ in server_load.speed(setup)}
    assert found == {
        "requests answered": 5,
        "requests failed": 1,
        "throughput of the server": 80.0,
        "throughput of heedful translate": 116.7,
        "server / heedful translate": 0.9,
        "processor time of the clients per request": 4.5,
        "latency, median": 0.4,
        "latency, 99th percentile": 9.0,
    }


def test_earlier_figures_stay(server_load: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_load.results, "RESULTS", tmp_path)
    row = {"value": 0.434, "required": "< 1", "commit": "old"}
    before = [{**row, "measure": "latency, median"}, {**row, "measure": "overload: other failures"}]
    (tmp_path / "server_load.json").write_text(json.dumps(before))
    kept = server_load.earlier()
    assert kept == [{**row, "measure": "earlier, with torch: latency, median", "required": ""}]
    now = [{**row, "measure": "core int8: latency, median", "commit": "new"}, *kept]
    (tmp_path / "server_load.json").write_text(json.dumps(now))
    assert server_load.earlier() == kept
