"""A run on two hosts that lose processes and each other is the quiet run: `python -m benchmarks.two_hosts`.

The hosts are network namespaces on one machine (see network_hosts.py), on each of which torchrun is started as
docs/scaling.md says. Processes are killed at random moments, then the first host, where the leading process is, is cut
off and comes back. In the end, losses and weights must be those of a run in one process that nobody disturbed, and
every start must have gone on from what was saved before it, or from later.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.network_hosts import Hosts, why_not

# In the order of their names torchrun numbers them: `alpha` leads as long as it is there. They meet at `beta`.
LEADING, MEETING = "alpha", "beta"
KILLS, STEPS, SEED = 20, 4000, 18
COMMAND = "python -m benchmarks.two_hosts"
LAUNCHER, WORKER = [b"-m", b"torch.distributed.run"], [b"-u", b"-m", b"heedful"]
WORDS = ("dog", "cat", "bird", "house", "tree", "sees", "hears", "likes", "red", "green", "big", "small", "never")
SETTINGS = [
    "model.width=32",
    "model.encoder={num_layers=1, dropout=0.2, attention={num_heads=2, dropout=0.1}, feed_forward={inner_width=46}}",
    "model.decoder={num_layers=1, dropout=0.2, attention={num_heads=2}, feed_forward={inner_width=46, dropout=0.1}}",
    "training.batches={tokens_per_step=2400, tokens_per_batch=300}",
    "training.saving={validations=4, checkpoint_seconds=0.5}",
    "training.machine={workers=2, threads=1}",
    'training.parallel={reduce="exact", timeout_seconds=8}',
]
# torchrun is started again on a host that lost the others; it is told to notice that soon.
LAUNCH = """
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
for attempt in $(seq 40); do
    "$0" -m torch.distributed.run --nnodes=1:2 --nproc-per-node=1 --max-restarts=100 \\
        --rdzv-backend=c10d --rdzv-id=two-hosts --rdzv-endpoint=beta:29400 \\
        --rdzv-conf=last_call_timeout=3,read_timeout=10 "$@" && exit
    sleep 1
done
exit 1
"""


@dataclass
class Findings:
    """What happened to a run, and what became of it."""

    kills: list[dict[str, Any]] = field(default_factory=list)
    cuts: int = 0
    starts: list[int] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    same_losses: bool = False
    same_weights: bool = False


class Run:
    """The run in its folder, as its files tell of it."""

    def __init__(self, folder: Path, name: str, steps: int) -> None:
        self.folder, self.out, self.steps = folder, folder / name, steps

    def arguments(self) -> list[str]:
        """The command, without the interpreter: the same on every host."""
        files = ["--source", self.folder / "text.en", "--target", self.folder / "text.de", "--out", self.out]
        sets = [f"--set={setting}" for setting in SETTINGS]
        return ["-m", "heedful", "train", "translation", *map(str, files), *sets, "--steps", str(self.steps)]

    def log(self) -> list[str]:
        """The lines of the log of the leading process."""
        file = self.out / "run" / "logs" / "rank-0.log"
        lines = file.read_text().splitlines(True) if file.exists() else []
        return [line for line in lines if line.endswith("\n")]

    def starts(self) -> list[int]:
        """The step from which each start of the leading process went on."""
        rows = [json.loads(line) for line in self.log() if '"start"' in line]
        return [row["resumed_at"] or 0 for row in rows]

    def saved(self) -> int:
        """The step of the newest checkpoint: it has its name, so it counts as saved."""
        found = sorted((self.out / "run" / "checkpoints").glob("step-?????????"))
        return int(found[-1].name[5:]) if found else 0

    def losses(self) -> list[tuple[str, int, float]]:
        """All losses of training and validation."""
        lines = (self.out / "run" / "metrics.jsonl").read_text().splitlines()
        return [(row["kind"], row["step"], row["loss"]) for row in map(json.loads, lines)]

    def size(self) -> int:
        """The number of processes since the last start."""
        saved = json.loads((self.out / "run" / "config.json").read_text())["saved"]
        return int(saved["resolved"]["training"]["parallel"]["replicate"] or 1)

    def step(self) -> int:
        """The step that the leading process has come to since its last start; 0 if it has taken none."""
        last = [json.loads(line) for line in self.log()[-1:]]
        return int(last[0]["step"]) if last and last[0]["kind"] in ("step", "validation") else 0


class Disturbance:
    """Kills and cuts off what takes part in a run, at moments that a seed decides."""

    def __init__(self, hosts: Hosts, run: Run, seed: int) -> None:
        self.hosts, self.run, self.draw = hosts, run, random.Random(seed)
        self.findings = Findings()
        # What was saved at a moment, and how many starts there had been.
        self.promises: list[tuple[int, int]] = []
        # The processes of the last start that was disturbed.
        self.disturbed: list[tuple[str, int]] = []

    def kill(self) -> None:
        """Kill a process, shortly after it was started or once it has taken a step."""
        self.wait_for(self.are_learning if self.draw.random() < 0.7 else self.are_there)
        time.sleep(self.draw.uniform(0.0, 3.0))
        self.disturbed = self.workers()
        if not self.disturbed:
            raise SystemExit(f"the run has ended after {len(self.findings.kills)} kills: give it more --steps")
        host, process = self.draw.choice(sorted(self.disturbed))
        self.promise()
        os.kill(process, signal.SIGKILL)
        self.findings.kills.append({"host": host, "saved": self.promises[-1][0], "step": self.run.step()})

    def cut_off(self) -> None:
        """Cut the first host off until the other one goes on alone and its torchrun has given up; let it come back."""
        self.wait_for(self.are_learning)
        self.promise()
        launchers = set(self.processes(LAUNCHER))
        self.hosts.unplug(LEADING)
        self.wait_for(lambda: self.goes_on() and self.run.size() == 1)
        # One that gives up when it is connected again would close the meeting place for all.
        self.wait_for(lambda: len(launchers & set(self.processes(LAUNCHER))) == 1)
        self.promise()
        self.disturbed = self.workers()
        self.hosts.plug_in(LEADING)
        self.wait_for(lambda: self.are_learning() and self.run.size() == 2)
        self.findings.cuts += 1

    def are_there(self) -> bool:
        """Whether both hosts have a new process."""
        workers = self.workers()
        return len(workers) == 2 and not set(workers) & set(self.disturbed)

    def are_learning(self) -> bool:
        """Whether these have taken steps."""
        return self.are_there() and self.goes_on()

    def goes_on(self) -> bool:
        """Whether steps were taken since the last disturbance."""
        return self.run.step() > 0 and (not self.promises or len(self.run.starts()) > self.promises[-1][1])

    def promise(self) -> None:
        """Note what is saved: no start after this may go back before it."""
        starts = len(self.run.starts())
        self.promises.append((self.run.saved(), starts))

    def workers(self) -> list[tuple[str, int]]:
        """The processes of the run, with their hosts."""
        return self.processes(WORKER)

    def processes(self, words: list[bytes]) -> list[tuple[str, int]]:
        """The processes whose command begins with these words, after the interpreter, with their hosts."""
        every = [(host, each) for host in self.hosts.names for each in self.hosts.processes(host)]
        return [(host, each) for host, each in every if _words(each)[1 : 1 + len(words)] == words]

    def wait_for(self, condition: Callable[[], bool], seconds: float = 240.0) -> None:
        """Wait until something is so; that takes too long if something hangs."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"nothing happened for {seconds:g} s: {self.run.log()[-1:]}, {self.workers()}")
            time.sleep(0.02)


def _words(process: int) -> list[bytes]:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:  # it has ended
        return []


def measure(folder: Path, kills: int, cuts: int, steps: int, seed: int) -> Findings:
    """The findings of a run that is disturbed so often."""
    draw = random.Random(seed)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(2, 11))) for _ in range(600)]
    (folder / "text.en").write_text("\n".join(lines) + "\n")
    (folder / "text.de").write_text("\n".join(line.upper() for line in lines) + "\n")
    quiet, run = Run(folder, "quiet", steps), Run(folder, "disturbed", steps)
    with (folder / "quiet.log").open("wb") as log:
        subprocess.run([sys.executable, *quiet.arguments()], check=True, stdin=subprocess.DEVNULL, stderr=log)
    with Hosts([LEADING, MEETING]) as hosts:
        disturbance = Disturbance(hosts, run, seed)
        launched = [
            hosts.start(name, ["sh", "-c", LAUNCH, sys.executable, *run.arguments()], folder / f"{name}.log")
            for name in hosts.names
        ]
        for _ in range(kills):
            disturbance.kill()
            print(f"killed {disturbance.findings.kills[-1]}", file=sys.stderr, flush=True)
        for _ in range(cuts):
            disturbance.cut_off()
            print(f"cut off and back: starts from {run.starts()}", file=sys.stderr, flush=True)
        codes = [each.wait(600) for each in launched]
    found = disturbance.findings
    found.starts = run.starts()
    found.lost = [
        f"saved {step}, but went on from {start}"
        for step, before in disturbance.promises
        for start in found.starts[before:]
        if start < step
    ]
    if any(codes):
        raise SystemExit(f"torchrun ended with {codes}; see {folder}")
    found.same_losses = run.losses() == quiet.losses()
    found.same_weights = all(
        (run.out / name).read_bytes() == (quiet.out / name).read_bytes()
        for name in ("model.safetensors", f"run/checkpoints/step-{steps:09d}/optimizer.safetensors")
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    reason = why_not()
    if reason:
        raise SystemExit(f"skipped: {reason}")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # the hosts go with this program
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="heedful-two-hosts-") as folder:
        found = measure(Path(folder), arguments.kills, 1, arguments.steps, arguments.seed)
    figures = [
        ("processes killed", len(found.kills), "processes", f"{KILLS}"),
        ("hosts cut off and back", found.cuts, "hosts", "1"),
        ("starts of the run", len(found.starts), "starts", ""),
        ("starts before what was saved", len(found.lost), "starts", "0"),
        ("losses as those of the quiet run", int(found.same_losses), "to the last bit", "1"),
        ("weights as those of the quiet run", int(found.same_weights), "to the last bit", "1"),
    ]
    seconds = time.monotonic() - begin
    rows = [results.row(name, value, unit, required, seconds, COMMAND) for name, value, unit, required in figures]
    if arguments.kills >= KILLS:
        results.write("two_hosts", rows)
        return
    for row in rows:
        print(f"{row['measure']:40} {row['value']:>12} {row['unit']:16} required: {row['required']}")


if __name__ == "__main__":
    main()
