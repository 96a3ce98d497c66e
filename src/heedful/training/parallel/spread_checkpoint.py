"""Checkpoints of a model that is spread over processes: each writes and reads its own share."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from heedful.training.checkpoint import checkpoint_path, completing, naming_damage
from heedful.training.parallel.piece_storage import PieceReader, PieceWriter
from heedful.training.parallel.pieces import Share
from heedful.training.parallel.share_plans import ShareLoadPlanner, ShareSavePlanner
from heedful.training.stored_tensors import Stored, stored_tensors

# A disk may keep some processes longer than others. One that is gone is noticed at once; training notices a hung one.
WRITING_SECONDS = 3600.0


def writing_group(seconds: float) -> dist.ProcessGroup:
    """A group of all processes for threads to talk through, without disturbing training."""
    return dist.new_group(backend="gloo", timeout=timedelta(seconds=max(seconds, WRITING_SECONDS)))


def save_shares(
    folder: Path, step: int, shares: Mapping[str, Share], state: dict[str, Any], group: dist.ProcessGroup
) -> None:
    """Write what the processes of a group have of a checkpoint, by group and name; all of them call it.

    It returns, in all of them, when the checkpoint is complete and has its name. What goes wrong in one of them is
    raised in all, and then nothing is left of the checkpoint.
    """
    final, size = checkpoint_path(folder, step), sum(share.local.nbytes for share in shares.values())
    writer, planner = PieceWriter(final, state, size), ShareSavePlanner(shares)
    try:
        with completing(final, size) if dist.get_rank(group) == 0 else nullcontext():
            save(dict(shares), storage_writer=writer, planner=planner, process_group=group)
    except CheckpointException as error:
        raise _first_of(error) from None


def read_shares(path: Path, stored: Mapping[str, Stored], shares: Mapping[str, Share]) -> None:
    """Fill the shares of this process, and no other, from a checkpoint of any number of processes."""
    reader, planner = PieceReader(path, stored), ShareLoadPlanner(shares)
    with warnings.catch_warnings(), naming_damage(path):
        # Torch warns that the processes do not wait for each other, which is intended.
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        try:
            load(dict(shares), storage_reader=reader, planner=planner, no_dist=True)
        except CheckpointException as error:
            raise _first_of(error) from None


def mean_of_shares(paths: Sequence[Path], shares: Mapping[str, Share]) -> None:
    """Fill the shares of this process with the mean of checkpoints, as `mean_of_checkpoints` gives it whole."""
    own = {f"model/{name}": share for name, share in shares.items()}
    total: dict[str, Tensor] = {}
    for path in paths:
        read_shares(path, stored_tensors(path), own)
        for name, share in own.items():
            total[name] = total[name] + share.local.double() if name in total else share.local.double()
    for name, share in own.items():
        share.local.copy_(total[name] / len(paths))


def _first_of(error: CheckpointException) -> BaseException:
    """The failure of the first process that failed."""
    return min(error.failures.items())[1][0]
