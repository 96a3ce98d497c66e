"""Preparing only the data of a run, which a machine without GPUs can do before the run begins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from heedful.config import merge
from heedful.prepared.checksums import CHECKSUMS_NAME
from heedful.prepared.folder import Expected
from heedful.storage import writing
from heedful.tasks.job import PreparedJob
from heedful.training.lock import locked
from heedful.training.resolve import asked_model_settings, check_settings
from heedful.training.run import RunObserver
from heedful.training.run_config import RunConfig
from heedful.training.saved_run import begun_run


@dataclass(frozen=True)
class Preparation:
    """The folder of a run's data, the data, and whether it was there already."""

    folder: Path
    data: PreparedJob
    was_there: bool

    @property
    def size(self) -> int:
        """The bytes of the folder's files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


def prepare(run: RunConfig, observer: RunObserver) -> Preparation:
    """Prepare the data of a run where `train` looks for it, or see that it is there."""
    run = replace(run, settings=merge(run.data.base_settings(), run.settings))
    # The device that the run is for need not be on this machine.
    check_settings(replace(run, settings=merge(run.settings, {"training": {"machine": {"device": "cpu"}}})))
    run.data.check()
    out = Path(run.out)
    folder = out / "run" / "prepared"
    with locked(out, 0.0, observer.message), writing(out / "run"):
        before = _made(folder)
        begun = begun_run(run, out / "run" / "config.json")
        if begun:
            run = begun[0]
        expected = Expected(begun[1].data_key) if begun else None
        data = run.data.prepare(out / "run", asked_model_settings(run), observer.preparing, expected)
        observer.prepared(data.messages)
        return Preparation(folder, data, was_there=_made(folder) == before)


def _made(folder: Path) -> int | None:
    """When the folder was completed, if it was."""
    sums = folder / CHECKSUMS_NAME
    return sums.stat().st_mtime_ns if sums.is_file() else None
