"""The parts of the speed benchmarks that can be wrong without anybody noticing."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmarks.speed import measuring, plots, scaling
from benchmarks.speed.peer import DRIVERS, Peer, PeerError
from benchmarks.speed.scaling import build
from benchmarks.speed.sizes import Size
from heedful.layers.attention import AttentionLayer, attend_fused
from heedful.tasks.translation.task import collate

TINY = Size(width=24, layers=3, heads=3, inner=40, vocabulary=53)


def test_operations_are_those_of_the_layers() -> None:
    model = build(TINY).eval()
    counted = []

    def of_linear(layer: nn.Linear, inputs: tuple[Tensor], output: Tensor) -> None:
        counted.append(2 * output.numel() * layer.in_features)

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, *rest) -> Tensor:
        counted.append(4 * query.numel() * key.shape[2] // (2 if causal else 1))
        return attend_fused(query, key, value, mask, causal, *rest)

    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.register_forward_hook(of_linear)
        elif isinstance(layer, AttentionLayer):
            layer.attend = attend
    model(torch.full((1, 7), 3), torch.full((1, 11), 3), torch.tensor([7]))
    assert TINY.training_flops(7, 11) == 3 * sum(counted)


def test_a_step_is_measured_at_every_length() -> None:
    found = list(scaling.stepping(TINY, (12, 31)))
    assert [(series, x) for series, x, _ in found] == [("heedful", 12), ("heedful", 31)]
    assert all(value > 0 for _, _, value in found)


def test_measures_are_taken_by_turns_and_the_first_round_is_dropped() -> None:
    order: list[str] = []
    values = {"a": iter([100.0, 1.0, 3.0, 2.0]), "b": iter([200.0, 9.0, 7.0, 8.0])}

    def measure(name: str) -> float:
        order.append(name)
        return next(values[name])

    found = measuring.interleaved({name: lambda n=name: measure(n) for name in values}, 3)
    assert order == ["a", "b"] * 4
    assert found == {"a": measuring.Measured(2.0, 1.0, 3.0), "b": measuring.Measured(8.0, 7.0, 9.0)}


def test_drivers_pad_as_heedful_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DRIVERS))
    import padded_batches

    rows = [np.array([5, 6, 7]), np.array([8]), np.array([9, 10, 11, 12, 13])]
    flat = {"ids": np.concatenate(rows), "lengths": np.array([3, 1, 5])}
    np.savez(tmp_path / "pairs.npz", **{f"{side}_{key}": flat[key] for side in ("source", "target") for key in flat})
    found = padded_batches.Pairs(str(tmp_path / "pairs.npz")).batch([2, 0, 1])
    expected = collate([rows[2], rows[0], rows[1]], [rows[2], rows[0], rows[1]])
    for name in ("source_BS", "source_lengths_B", "target_BT", "labels_BT"):
        assert torch.equal(getattr(found, name), getattr(expected, name))
    assert found.target_tokens == expected.num_targets


def test_a_driver_answers_and_tells_what_went_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import sys\nfrom protocol import serve\n"
    program += "def double(x):\n    print('noise')\n    return 2 * x\nserve({'double': double})\n"
    (tmp_path / "twice.py").write_text(program)
    (tmp_path / "protocol.py").write_text((DRIVERS / "protocol.py").read_text())
    monkeypatch.setattr("benchmarks.speed.peer.DRIVERS", tmp_path)
    monkeypatch.setattr("benchmarks.speed.peer.LOGS", tmp_path)
    peer = Peer("twice", "heedful", threads=1)
    assert peer.ask("double", x=3) == 6
    with pytest.raises(PeerError, match="TypeError"):
        peer.ask("double", x=None)
    assert peer.ask("double", x="ab") == "abab"
    assert peer.peak_megabytes() > 1 or not sys.platform.startswith("linux")
    peer.close()


def test_charts_are_written(tmp_path: Path) -> None:
    plots.bars(tmp_path / "bars.svg", "speed", {"d<3": {"a": 1.0, "b": 2.0}})
    plots.lines(tmp_path / "lines.svg", "cost", {"a": [(1, 2.0), (8, 30.0)]}, "length", "ms")
    assert "d&lt;3" in (tmp_path / "bars.svg").read_text() and "polyline" in (tmp_path / "lines.svg").read_text()


def test_the_command_says_where_the_programs_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.cli import bench
    from heedful.errors import UserError

    monkeypatch.setattr(bench, "__file__", str(tmp_path / "lib" / "heedful" / "cli" / "bench.py"))
    with pytest.raises(UserError, match="get heedful's source code"):
        bench.bench.main([], standalone_mode=False)
