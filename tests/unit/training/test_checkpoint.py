from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.training.averaging import MovingAverage, mean_of_checkpoints
from heedful.training.checkpoint import checkpoint_folders, load_checkpoint, prune_checkpoints, save_checkpoint
from heedful.training.metrics import MetricsFile
from heedful.training.parallel.pieces import Share, whole_share
from heedful.training.parallel.spread_model import SpreadModel
from heedful.training.stored_tensors import (
    PIECES,
    DamagedCheckpointError,
    Stored,
    StoredPiece,
    overlap,
    pieces_text,
    stored_tensors,
)
from small_trainer import save_step, small_trainer


def save(folder: Path, step: int) -> Path:
    return save_checkpoint(folder, step, {"model": {"w": torch.full((3,), float(step))}}, {"step": step})


def test_round_trip_to_the_last_bit(tmp_path: Path) -> None:
    weights = {"w": torch.randn(5, 7), "b": torch.randn(3, 5).T}
    path = save_checkpoint(tmp_path, 7, {"model": weights, "other": {"x": torch.ones(1)}}, {"a": [1, None]})
    tensors, state = load_checkpoint(path)
    assert state == {"a": [1, None]}
    assert torch.equal(tensors["model"]["w"], weights["w"])
    assert tensors["other"]["x"].tolist() == [1.0]


def test_half_written_checkpoints_are_not_seen_and_are_removed(tmp_path: Path) -> None:
    save(tmp_path, 3)
    (tmp_path / "writing-step-000000005").mkdir()
    assert [each.name for each in checkpoint_folders(tmp_path)] == ["step-000000003"]
    prune_checkpoints(tmp_path, set())
    assert [each.name for each in tmp_path.iterdir()] == ["step-000000003"]


def test_the_newest_two_and_the_chosen_ones_stay(tmp_path: Path) -> None:
    for step in (2, 3, 5, 7, 11):
        save(tmp_path, step)
    prune_checkpoints(tmp_path, {3})
    assert [int(each.name[5:]) for each in checkpoint_folders(tmp_path)] == [3, 7, 11]


def test_a_checkpoint_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    save(tmp_path, 3)
    save_checkpoint(tmp_path, 3, {"model": {"w": torch.zeros(3)}}, {"again": True})
    assert load_checkpoint(tmp_path / "step-000000003")[1] == {"again": True}
    assert [each.name for each in tmp_path.iterdir()] == ["step-000000003"]


def test_mean_of_checkpoints(tmp_path: Path) -> None:
    paths = [save(tmp_path, step) for step in (2, 3, 7)]
    assert mean_of_checkpoints(paths)["w"].tolist() == [4.0] * 3


def pieces(*places: tuple[tuple[int, int], tuple[int, int]]) -> Stored:
    return Stored("F32", (5, 7), tuple(StoredPiece("a.safetensors", str(at), at, sizes) for at, sizes in places))


def test_pieces_that_make_up_a_tensor_do_not_overlap(tmp_path: Path) -> None:
    apart = pieces(((0, 0), (2, 3)), ((0, 3), (2, 4)), ((2, 0), (3, 7)), ((1, 1), (0, 7 - 1)))
    (tmp_path / PIECES).write_text(pieces_text({"model/w": apart}))
    assert stored_tensors(tmp_path) == {"model/w": apart}
    # As many numbers as the tensor has, but some of them twice and others not at all.
    for twice in (((0, 0), (2, 3)), ((0, 3), (2, 4)), ((1, 0), (3, 7))), (((0, 0), (5, 4)), ((0, 2), (5, 3))):
        (tmp_path / PIECES).write_text(pieces_text({"model/w": pieces(*twice)}))
        with pytest.raises(DamagedCheckpointError, match="does not say where model/w is"):
            stored_tensors(tmp_path)


def test_pieces_overlap_if_they_have_a_place_in_common() -> None:
    random = np.random.default_rng(5)
    found = set()
    for _ in range(200):
        corners = [np.sort(random.integers(0, 8, (2, 2)), axis=0) for _ in range(random.integers(1, 4))]
        places = [StoredPiece("", "", tuple(first), tuple(last - first)) for first, last in corners]
        times = np.zeros((8, 8))
        for each in places:
            times[each.in_whole()] += 1
        assert overlap(places) == bool((times > 1).any())
        found.add(overlap(places))
    assert found == {False, True}


class Alone(SpreadModel):
    """A spread model that is whole in this process."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model, self.average = model, None

    def whole(self, tensors: Mapping[str, Tensor], names: Sequence[str]) -> Iterator[tuple[str, Tensor]]:
        return iter([(name, tensors[name]) for name in names])

    def shares(self, tensors: Mapping[str, Tensor]) -> dict[str, Share]:
        return {name: whole_share(tensor) for name, tensor in tensors.items()}


@pytest.mark.parametrize("spread", [False, True])
def test_the_mean_is_in_place_until_its_block_ends_in_whatever_way(spread: bool, tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path)
    for step in (2, 3, 7):
        save_step(trainer, step)
    learner = Alone(trainer.model) if spread else trainer.learner

    def weights() -> list[float]:
        kept = learner._kept(False) if spread else dict(trainer.model.named_parameters())
        return kept["bias"].tolist()

    def fail() -> None:
        with learner.mean_of(checkpoint_folders(tmp_path / "checkpoints")[-2:]):
            assert weights() == [5.0, 5.0]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert weights() == [7.0, 7.0]


def test_moving_average_and_its_swap() -> None:
    model = torch.nn.Linear(3, 2)
    first = model.weight.detach().clone()
    average = MovingAverage(model, 0.75)
    with torch.no_grad():
        model.weight += 1.0
    average.update(1000)
    torch.testing.assert_close(average.tensors["weight"], first + 0.25)
    with average.in_place():
        torch.testing.assert_close(model.weight.detach(), first + 0.25)
    torch.testing.assert_close(model.weight.detach(), first + 1.0)


def test_metrics_after_a_step_are_dropped_also_half_a_line(tmp_path: Path) -> None:
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    for step in range(1, 6):
        metrics.write("train", {"step": step, "loss": step / 3})
    with metrics.path.open("a") as file:
        file.write('{"kind": "train", "st')
    metrics.truncate(3)
    assert [line.split('"step": ')[1][0] for line in metrics.path.read_text().splitlines()] == ["1", "2", "3"]
