"""The plan's bytes of live tensors beside those that real processes take: `python -m benchmarks.plan_memory`.

Two processes on this machine, connected by gloo, train on full sequences, as copies of the model and with its
parameters in shards. What their tensors take is told by the allocator of torch, which the plan knows nothing of; the
resident memory of a process, with Python and torch themselves, stands beside.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

from heedful.machine.memory import resident_memory
from heedful.planning.layouts import Layout
from heedful.planning.measured import Rehearsal, measure_step, parallel_config
from heedful.planning.subject import Subject, subject_of
from heedful.training.parallel.apply import make_mesh

LAYOUTS = {"copies": Layout(replicate=2), "shards": Layout(shard=2)}
# Sequences that each process computes at a time.
SEQUENCES = {"translation_base": 4, "gpt2_small": 1}


def in_fp32(subject: Subject) -> Subject:
    """As a CPU computes."""
    training = subject.training
    return replace(subject, training=replace(training, machine=replace(training.machine, precision="fp32")))


def planned_bytes(subject: Subject, layout: Layout) -> int:
    """The plan's bytes of live tensors at the peak, on a CPU."""
    return sum(measure_step(subject, layout, torch.device("cpu"))[0].values())


def real_bytes(subject: Subject, layout: Layout) -> list[dict[str, int]]:
    """What each of the processes of a layout really took: its tensors at the peak, and resident memory."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_process, args=(rank, folder, subject, layout), daemon=True)
            for rank in range(layout.gpus)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        return [json.loads(Path(folder, f"{rank}.json").read_text()) for rank in range(layout.gpus)]


def _process(rank: int, folder: str, subject: Subject, layout: Layout) -> None:
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    store = dist.FileStore(str(Path(folder, "store")), layout.gpus)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=layout.gpus, timeout=timedelta(seconds=300))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        rehearsal = Rehearsal(subject, layout, make_mesh(parallel_config(layout), "cpu"))
        rehearsal.step()
        rehearsal.step()
        resident = resident_memory()
    found = {"tensors": allocated_peak(recorded), "resident": resident}
    Path(folder, f"{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def allocated_peak(recorded: Any) -> int:
    """The most bytes that torch's allocator had given out at once, since the recording began."""
    events = [each for each in recorded.profiler.kineto_results.events() if each.name() == "[memory]"]
    peak = total = 0
    for event in sorted(events, key=lambda each: each.start_ns()):
        total += event.nbytes()
        peak = max(peak, total)
    return peak


def main() -> None:
    """Measure, and write benchmarks/results/plan_memory.json."""
    from benchmarks.results import row, write

    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    command = "python -m benchmarks.plan_memory"
    rows = []
    for name, sequences in SEQUENCES.items():
        subject = in_fp32(subject_of(name))
        for kind, mesh in LAYOUTS.items():
            layout = replace(mesh, sequences=sequences)
            began = time.monotonic()
            planned, real = planned_bytes(subject, layout), real_bytes(subject, layout)
            seconds = time.monotonic() - began
            tensors = max(each["tensors"] for each in real)
            where = f"{name}, 2 processes, {kind}"
            rows += [
                row(f"{where}: planned", planned, "bytes", "", seconds, command),
                row(f"{where}: measured", tensors, "bytes", "", seconds, command),
                row(f"{where}: planned / measured", round(planned / tensors, 4), "", "0.9 to 1.1", seconds, command),
                row(f"{where}: resident", max(each["resident"] for each in real), "bytes", "", seconds, command),
            ]
    write("plan_memory", rows)


if __name__ == "__main__":
    main()
