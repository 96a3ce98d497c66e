"""What processes have written together is read again, to the last bit, in any layout and by one process."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.training.checkpoint import DamagedCheckpointError, check_checkpoint, load_checkpoint, save_checkpoint
from heedful.training.parallel.pieces import whole_share
from heedful.training.parallel.spread_checkpoint import read_shares
from heedful.training.stored_tensors import stored_tensors
from parallel_models import CASES, build
from process_group import run_in_processes
from spread_checkpoints import NAMES, STATE, numbered, save_and_read

LAYOUTS = [{"shard": 2, "tensor": 2}, {"shard": 4}, {"replicate": 2, "tensor": 2}]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on the size of files")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spread")


@pytest.fixture(scope="module")
def results(folder: Path) -> list[dict[str, Any]]:
    return run_in_processes(4, folder / "results", save_and_read, str(folder), LAYOUTS)


def test_every_layout_reads_what_every_other_has_saved(results: list[dict[str, Any]], folder: Path) -> None:
    assert [each["wrong"] for each in results] == [[], [], [], []]
    for name in NAMES:
        wanted = numbered(build(CASES[name], torch.float32))
        for number in range(len(LAYOUTS) + 1):
            path = folder / name / f"step-{number:09d}"
            tensors, state = load_checkpoint(path)
            assert state == STATE and float(tensors["optimizer"]["count/step"]) == 3.0
            assert tensors["model"].keys() == wanted.keys()
            assert all(torch.equal(tensors["model"][each], wanted[each]) for each in wanted)
            assert {file.suffix for file in path.iterdir()} == {".json", ".safetensors"}
        assert len(list((folder / name / "step-000000000").glob("rank-*"))) == 4
    _check_pieces(folder / "translation" / "step-000000000")
    _check_damage(folder / "translation" / "step-000000002")


def _check_pieces(path: Path) -> None:
    """Each number is written once, and no process writes much more than others."""
    stored = stored_tensors(path)
    sizes = [file.stat().st_size for file in path.glob("rank-*")]
    numbers = sum(torch.Size(each.shape).numel() for each in stored.values())
    assert sum(sizes) < 4 * numbers + 200 * sum(len(each.pieces) for each in stored.values())
    assert max(sizes) < 1.5 * min(sizes)
    packed = stored["model/encoder.0.attention.query_key_value_projection.weight"]
    assert len(packed.pieces) == 2 * 3 + 2  # two processes have rows of two of the three matrices


def _check_damage(path: Path) -> None:
    file = path / "rank-00002.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedCheckpointError, match=r"rank-00002.safetensors does not have the checksum"):
        check_checkpoint(path)
    (path / "checksums.json").unlink()
    pieces = json.loads((path / "pieces.json").read_text())
    entry = pieces["tensors"]["model/encoder.0.attention.query_key_value_projection.weight"]
    for changed in ({"file": "../rank-00000.safetensors"}, {"offsets": [-1, 0]}, {"sizes": [1, 1]}, {"key": 5}):
        kept, entry["pieces"][0] = entry["pieces"][0], {**entry["pieces"][0], **changed}
        (path / "pieces.json").write_text(json.dumps(pieces))
        with pytest.raises(DamagedCheckpointError, match=r"pieces.json does not say where model/encoder.0"):
            check_checkpoint(path)
        entry["pieces"][0] = kept


@pytest.mark.parametrize(("name", "shape"), [("weight/exp_avg", (5, 3)), ("weight/exp_avg_sq", (3, 5))])
def test_a_share_that_a_checkpoint_does_not_have_is_damage(name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 1, {"optimizer": {"weight/exp_avg_sq": torch.zeros(5, 3)}}, STATE)
    with pytest.raises(DamagedCheckpointError, match=f"optimizer/{name}"):
        read_shares(path, stored_tensors(path), {f"optimizer/{name}": whole_share(torch.zeros(shape))})


def test_what_one_process_cannot_write_is_told_by_all_and_leaves_nothing(
    results: list[dict[str, Any]], folder: Path
) -> None:
    place, told = folder / "small", {each["told"] for each in results}
    assert len(told) == 1
    start = f"cannot write {place / 'step-000000002'}: it exceeds the largest file size that is allowed"
    assert told.pop().startswith(start)
    assert sorted(each.name for each in place.iterdir()) == ["step-000000001", "step-000000003"]
    assert load_checkpoint(place / "step-000000003")[1] == STATE
