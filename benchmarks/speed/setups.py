"""How heedful and CTranslate2 are started, and which of several settings is the fastest."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path
from typing import Literal

from benchmarks.speed.contender import Contender, Setup
from benchmarks.speed.corpus import WORK
from heedful.interop import ctranslate2, ctranslate2_export
from heedful.tasks.translation.pipeline import DEFAULT_BATCH_SIZE

# How often each setting is looked at; the best time counts.
LOOKS = 3
# Threads that wait without spinning, which some systems gain by.
PASSIVE = (("OMP_WAIT_POLICY", "passive"),)


def heedful_setup(folder: Path, precision: str, cores: int, engine: str = "core") -> Setup:
    """heedful as it is used: all cores, and its own batches."""
    arguments = {"model": str(folder), "workers": cores, "precision": precision, "engine": engine}
    words = f"{cores} {'threads' if engine == 'core' else 'workers'}, batch {DEFAULT_BATCH_SIZE}"
    return Setup("heedful_translation", "heedful", 1, arguments, DEFAULT_BATCH_SIZE, words=words)


def ctranslate2_setups(model: Path, precision: str, cores: int) -> list[Setup]:
    """CTranslate2 for many sentences: a sentence on each core, or all cores on each."""
    return [
        Setup(
            "ctranslate2_translation",
            "ctranslate2",
            intra,
            {"model": str(model), "inter_threads": inter, "intra_threads": intra, "precision": precision},
            batch,
            words=f"inter {inter}, intra {intra}, batch {batch}",
        )
        for inter, intra, batch in ((cores, 1, 32), (cores, 1, 64), (1, cores, 64))
    ]


def thread_choices(cores: int) -> list[tuple[int, tuple[tuple[str, str], ...], str]]:
    """Threads for one sentence, the variables that go with them, and both in words."""
    choices: list[tuple[int, tuple[tuple[str, str], ...], str]] = [(1, (), "1 thread")]
    if cores > 1:
        choices += [(cores, (), f"{cores} threads"), (cores, PASSIVE, f"{cores} threads that wait passively")]
    return choices


def ctranslate2_single(model: Path, precision: str, cores: int) -> list[Setup]:
    """CTranslate2 for one sentence at a time, by threads."""
    return [
        Setup(
            "ctranslate2_translation",
            "ctranslate2",
            threads,
            {"model": str(model), "inter_threads": 1, "intra_threads": threads, "precision": precision},
            1,
            words=words,
            variables=variables,
        )
        for threads, variables, words in thread_choices(cores)
    ]


def exported(folder: Path, precision: Literal["float32", "int8"] = "float32") -> Path:
    """The model as CTranslate2 has it, verified; with weights of 8 bits it loads faster, in less memory.

    It is made anew when the weights are, or the code that exports them.
    """
    place = zlib.crc32(str(folder.resolve()).encode())  # other folders may have the same name
    out = WORK / f"{folder.name}-{place:08x}-ctranslate2-{precision}"
    made = out / "model.bin"
    sources = [folder / "model.safetensors", *map(Path, (ctranslate2.__file__, ctranslate2_export.__file__))]
    if not made.is_file() or made.stat().st_mtime < max(each.stat().st_mtime for each in sources):
        shutil.rmtree(out, ignore_errors=True)
        ctranslate2_export.export_folder(folder, out, precision)
    return out


def fastest(choices: list[Setup], lengths: tuple[int, int], sources: list[list[int]]) -> Setup:
    """The fastest of a system's settings, by a few looks at each after another one that warms up."""
    if len(choices) == 1:
        return choices[0]
    times = {}
    for number, setup in enumerate(choices):
        contender = Contender(setup, lengths)
        contender.start()
        contender.seconds(sources[:8])
        times[number] = min(contender.seconds(sources) for _ in range(LOOKS))
        contender.stop()
    return choices[min(times, key=times.__getitem__)]
