"""The settings of the control groups that this process is in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ALL, OF_PROCESS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def group_settings(name: str) -> Iterator[str]:
    """The text of a setting in the process's own group and in each one around it, where there is one: all count."""
    own = PurePosixPath(_own_group())
    for group in (own, *own.parents):
        try:
            yield (ALL / group.relative_to("/") / name).read_text()
        except OSError:  # no such group, or none with this setting
            continue


def _own_group() -> str:
    try:
        lines = OF_PROCESS.read_text().splitlines()
    except OSError:  # not Linux
        return "/"
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::/")), "/")
