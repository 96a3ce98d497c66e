"""Broken copies of JSON: one value of it replaced, removed or added, whatever it is."""

import copy
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

NESTED: list[Any] = []
for _ in range(50):
    NESTED = [NESTED]
WRONG = [None, True, False, -1, 0, 1, 3, 1.5, -0.5, 2**31, 10**9, 10**18, 10**30, 10**400, 1e308, float("nan")]
WRONG += [float("inf"), "", "x", "10", "\n", "\x00", "../x", [], [1], ["x"], [[]], {}, {"x": 1}, {"0": "a"}, NESTED]


def places(data: Any, path: tuple = ()) -> Iterator[tuple]:
    """The paths of all values in nested data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def mutated(data: Any, draw: st.DataObject) -> Any:
    """The data with one value replaced, or removed, or one more beside it."""
    data = copy.deepcopy(data)
    *inner, last = draw.draw(st.sampled_from(list(places(data))), label="place")
    target = data
    for key in inner:
        target = target[key]
    kind = draw.draw(st.sampled_from(["replace", "replace", "replace", "remove", "add"]), label="change")
    if kind == "remove":
        del target[last]
    elif kind == "add" and isinstance(target, dict):
        target["strange"] = draw.draw(st.sampled_from(WRONG))
    else:
        target[last] = draw.draw(st.sampled_from(WRONG), label="value")
    return data


def change(file: Path, **changes: Any) -> None:
    """Replace settings, named by their path with __ between the parts."""
    data = json.loads(file.read_text())
    for name, value in changes.items():
        *inner, last = name.split("__")
        target = data
        for key in inner:
            target = target[key]
        target[last] = value
    file.write_text(json.dumps(data))


def unseal(folder: Path) -> Path:
    """Take the checksums out of a model folder, so that what is changed in it is judged by what it is."""
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    save_file({name: tensor.clone() for name, tensor in load_file(file).items()}, file, {"format": "pt"})
    return folder


@contextmanager
def little_time_and_memory(seconds: float = 1.0, megabytes: float = 200.0) -> Iterator[None]:
    """What happens inside must take less than so much of both."""
    import resource

    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        yield
    finally:
        _check(before, started, seconds, megabytes)


def _check(before: int, started: float, seconds: float, megabytes: float) -> None:
    import resource

    taken, grown = time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert taken < seconds, f"{taken:.2f} s"
    assert grown < megabytes * 1024, f"{grown / 1024:.0f} MB"
