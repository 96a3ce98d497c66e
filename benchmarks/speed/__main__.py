"""Runs the programs: `python -m benchmarks.speed [NAME ...] [--quick] [--model FOLDER]` from the root of a checkout."""

from __future__ import annotations

import argparse
import importlib
import os
import time
from pathlib import Path

from heedful.machine.memory import keep_freed_memory

PROGRAMS = ("limits", "training", "translation", "engine", "scaling", "report")


def main() -> None:
    """Run the programs that are named, or all, one after the other."""
    parser = argparse.ArgumentParser(prog="heedful bench", description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="NAME", help=f"of {', '.join(PROGRAMS)}; all, if none is named")
    parser.add_argument("--quick", action="store_true", help="tiny settings, to see that everything runs")
    parser.add_argument(
        "--model",
        type=Path,
        help="a trained translation model, in place of random weights; for engine, of those of d=128",
    )
    options = parser.parse_args()
    for name in options.programs:
        if name not in PROGRAMS:
            parser.error(f"there is no program {name!r}: choose from {', '.join(PROGRAMS)}")
    keep_freed_memory()  # as the command line does
    # What is imported for the first time is compiled for all starts to come, as it is for users.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.monotonic()
    for name in options.programs or PROGRAMS:
        print(f"== {name}", flush=True)
        program = importlib.import_module(f"benchmarks.speed.{name}")
        if name in ("translation", "engine"):
            program.main(options.quick, options.model)
        else:
            program.main(options.quick)
        print(f"== {name}: done after {(time.monotonic() - started) / 60:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()
