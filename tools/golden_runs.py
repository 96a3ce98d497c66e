"""Shows that a change of the code changes no number: compares this tree with a commit, to the last bit.

    python tools/golden_runs.py COMMIT [JOB ...]

Each tree trains every job for 20 steps with two validations. The commit also leaves a run of each job unfinished, which
this tree continues, and this tree uses the commit's models. Losses, weights, texts and scores must be the same. Exits
with 1 if one is not.

Both trees use the models with the same engine: the core, which is compiled for the commit, or torch if the commit is
from before the core.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[1]
STEPS, KILLED_AFTER, SENTENCES = 20, 6, 1000
STACK = "num_layers=2, dropout=0.1, attention={num_heads=4}, feed_forward={inner_width=96}"
SMALL = ["--set=model.width=64", f"--set=model.stack={{{STACK}}}"]
TWO_STACKS = ["--set=model.width=64", f"--set=model.encoder={{{STACK}}}", f"--set=model.decoder={{{STACK}}}"]
JOBS = {
    "translation": ["translation", "--tsv", "pairs.tsv", *TWO_STACKS],
    "recurrent": ["translation", "--tsv", "pairs.tsv", "--family", "recurrent", "--set=model.width=64"],
    "language_model": ["language-model", "--text", "lines.txt", *SMALL],
    "xlnet": ["language-model", "--text", "lines.txt", "--family", "xlnet", "--set=model.memory_length=16", *SMALL],
    "masked": ["masked-language-model", "--text", "lines.txt", *SMALL],
    "classifier": ["classifier", "--data", "labels.tsv", *SMALL],
    "tagger": ["tagger", "--data", "tags.tsv", *SMALL],
    "images": ["image-classifier", "--images", "images", *SMALL],
}
SETTINGS = [
    "--set=training.batches={tokens_per_step=1280, tokens_per_batch=320}",
    "--set=training.saving={validations=2, checkpoint_seconds=0.0}",
    "--set=training.machine={workers=2, threads=1}",
]
# Options whose defaults have changed are given explicitly.
TRANSLATE = ["translate", "{}", "--input", "sources.txt", "--scores", "--min-length", "1", "--max-length", "24"]
# Job -> what is done with its model: a name, and the command.
USES = {
    "translation": {
        "greedy": [*TRANSLATE, "--beam", "1"],
        "beam 5": [*TRANSLATE, "--nbest", "3", "--alignment"],
        "sampling": [*TRANSLATE, "--sample", "--top-k", "7", "--seed", "3"],
        "int8": [*TRANSLATE, "--precision", "int8"],
        "given translations": ["score", "{}", "--source", "sources.txt", "--target", "sources.txt"],
    },
    "recurrent": {"beam 5": TRANSLATE},
    "language_model": {"sampling": ["generate", "{}", "red dog", "--max-tokens", "40", "--seed", "3"]},
    "xlnet": {"greedy": ["generate", "{}", "red dog", "--max-tokens", "40", "--temperature", "0"]},
    "masked": {"words": ["fill", "{}", "red [MASK] blue"], "vectors": ["embed", "{}", "red dog", "blue"]},
    "classifier": {"labels": ["classify", "{}", "--input", "sources.txt", "--top", "2"]},
    "tagger": {"tags": ["tag", "{}", "--input", "sources.txt"]},
    "images": {"labels": ["classify", "{}", "images/light/0.png", "images/dark/0.png"]},
}


def write_data(folder: Path) -> None:
    """Some data for every job, the same each time."""
    draw = random.Random(5)
    words = ["".join(draw.choices("abdeiklmnorstu", k=draw.randint(2, 9))) for _ in range(300)]
    lines = [" ".join(draw.choices(words, k=draw.randint(1, 17))) for _ in range(2000)]
    (folder / "lines.txt").write_text("\n".join(lines) + "\n")
    (folder / "sources.txt").write_text("\n".join(lines[-SENTENCES:]) + "\n")
    (folder / "pairs.tsv").write_text("".join(f"{line}\t{' '.join(reversed(line.split()))}\n" for line in lines))
    (folder / "labels.tsv").write_text("".join(f"{len(line.split()) % 3}\t{line}\n" for line in lines))
    tagged = ("".join(f"{word}\t{len(word)}\n" for word in line.split()) for line in lines)
    (folder / "tags.tsv").write_text("\n".join(tagged))
    pixels = np.random.default_rng(1)
    for label, least in (("dark", 0), ("light", 128)):
        (folder / "images" / label).mkdir(parents=True)
        for number in range(100):
            image = pixels.integers(least, least + 128, (12, 12, 3), np.uint8)
            Image.fromarray(image).save(folder / "images" / label / f"{number}.png")


class Tree:
    """The code in a folder, run as users run it."""

    def __init__(self, folder: Path, data: Path, using: Sequence[str] = ()) -> None:
        self.data, self.using = data, using
        self.environment = {**os.environ, "PYTHONPATH": str(folder / "src")}

    def start(self, arguments: Iterable[str]) -> subprocess.Popen[str]:
        """Start the command."""
        command = [sys.executable, "-m", "heedful", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.data, env=self.environment, stdout=pipe, stderr=pipe, text=True)

    def run(self, arguments: Iterable[str]) -> str:
        """What the command prints."""
        process = self.start(arguments)
        output, errors = process.communicate()
        if process.returncode:
            sys.exit(f"{' '.join(process.args)}\n{errors}")  # type: ignore[arg-type]
        return output

    def train(self, job: str, out: str) -> dict[str, str]:
        """Train, or continue: the losses of all steps and validations, and the hash of the weights."""
        self.run(training(job, out))
        rows = [json.loads(line) for line in (self.data / out / "run/metrics.jsonl").read_text().splitlines()]
        losses = {f"{row['kind']} {row['step']}": repr(row["loss"]) for row in rows}
        assert len(losses) == STEPS + 2, losses
        weights = (self.data / out / "model.safetensors").read_bytes()
        header = 8 + int.from_bytes(weights[:8], "little")  # which says more in later versions
        return {**losses, "weights": digest(weights[header:])}

    def leave_unfinished(self, job: str, out: str) -> None:
        """Begin to train, and kill the run after a few steps."""
        process, metrics = self.start(training(job, out)), self.data / out / "run/metrics.jsonl"
        while not (metrics.exists() and metrics.read_text().count('"train"') >= KILLED_AFTER):
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.001)
        process.kill()
        process.communicate()

    def use(self, job: str, out: str) -> dict[str, str]:
        """Use of a model -> the hash of what is printed."""
        commands = {name: [each.format(out) for each in command] for name, command in USES[job].items()}
        commands = {name: [*command, *self.using] for name, command in commands.items()}
        return {name: digest(self.run(command).encode()) for name, command in commands.items()}


def training(job: str, out: str) -> list[str]:
    """The command that trains a job."""
    return ["train", *JOBS[job], *SETTINGS, "--steps", str(STEPS), "--out", out]


def digest(content: bytes) -> str:
    """A short hash."""
    return hashlib.sha256(content).hexdigest()[:16]


def compare(job: str, before: Tree, after: Tree) -> bool:
    """Whether all numbers of a job are the same in both trees; prints them."""
    same = True
    old = before.train(job, f"{job}-before")
    before.leave_unfinished(job, f"{job}-unfinished")
    results = {
        "trained": (old, after.train(job, f"{job}-after")),
        "continued": (old, after.train(job, f"{job}-unfinished")),
        "used": (before.use(job, f"{job}-before"), after.use(job, f"{job}-before")),
    }
    for name, (expected, found) in results.items():
        differing = [key for key in expected if expected[key] != found.get(key)]
        shown = ", ".join(found) if name == "used" else f"{len(found) - 1} losses, weights {found['weights']}"
        print(
            f"{job:15} {name:10} {'DIFFERS: ' + ', '.join(differing) if differing else 'the same'}  ({shown})",
            flush=True,
        )
        same = same and not differing
    return same


def main() -> int:
    """Check out the commit, and compare job by job."""
    commit, *jobs = sys.argv[1:]
    with tempfile.TemporaryDirectory() as inside:
        folder, data = Path(inside, "before"), Path(inside, "data")
        data.mkdir()
        write_data(data)
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(folder), commit], check=True)
        try:
            has_core = (folder / "core").is_dir()
            if has_core:
                subprocess.run([sys.executable, folder / "build_backend" / "heedful_build.py"], check=True)
            before, after = Tree(folder, data), Tree(ROOT, data, () if has_core else ("--engine", "torch"))
            same = [compare(job, before, after) for job in jobs or JOBS]
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
