"""Counts how easy it is to find one's way in the code: the walk of a sentence, the sizes, the names, what repeats.

    python tools/house_counts.py [TREE]

TREE is the folder of another checkout, to see what a restructuring did. The walk of a sentence counts the
files whose functions run, not those that are only imported.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median

# Runs the command given after the name of a file; lists in that file which files' functions ran.
TRACE = """
import json, os, sys, threading
seen, record = set(), sys.argv[1]
def note(frame, event, argument):
    if event == "call" and "/heedful/" in frame.f_code.co_filename and frame.f_code.co_name != "<module>":
        seen.add(frame.f_code.co_filename)
def write():
    with open(f"{record}.{os.getpid()}", "w") as file:
        json.dump(sorted(seen), file)
sys.setprofile(note)
threading.setprofile(note)
from heedful.cli.main import main
try:
    main(sys.argv[2:])
finally:
    sys.setprofile(None)
    write()
"""
SHARED_LINES = 6
STACK = "{num_layers=1, attention={num_heads=2}, feed_forward={inner_width=32}}"
SMALL = ["--set=model.width=32", f"--set=model.encoder={STACK}", f"--set=model.decoder={STACK}"]
# One process, so that all of the walk is seen.
ONE = ["--set=training.machine={workers=1, threads=1}"]


def walks(package: Path) -> dict[str, int]:
    """Command -> the number of files whose functions run."""
    with tempfile.TemporaryDirectory() as inside:
        folder = Path(inside)
        words = ["red", "green", "blue", "dog", "cat", "bird", "sun"]
        lines = [f"{words[n % 7]} {words[n // 7 % 7]} {words[n // 49 % 7]} {n}" for n in range(1100)]
        (folder / "pairs.tsv").write_text("".join(f"{line}\t{line.upper()}\n" for line in lines))
        train = ["train", "translation", "--tsv", "pairs.tsv", "--out", "model", "--steps", "2", *SMALL, *ONE]
        commands = {"train": train, "translate": ["translate", "model", "red dog", "--workers", "1"]}
        found = {}
        for name, arguments in commands.items():
            environment = {**os.environ, "PYTHONPATH": str(package.parent)}
            command = [sys.executable, "-c", TRACE, str(folder / name), *arguments]
            subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
            files = {each for part in folder.glob(f"{name}.*") for each in json.loads(part.read_text())}
            found[name] = len([each for each in files if each.startswith(str(package))])
        return found


def shared_names(sources: dict[Path, str]) -> list[str]:
    """The names that several classes have."""
    names = Counter(
        node.name for text in sources.values() for node in ast.parse(text).body if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, count in names.items() if count > 1)


def repeats(sources: dict[Path, str]) -> int:
    """Pairs of places that share lines: runs of equal lines, without short ones, imports and comments."""
    places: dict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    for path, text in sources.items():
        stripped = [line.strip() for line in text.splitlines()]
        lines = [line for line in stripped if len(line) > 3 and not line.startswith(("import ", "from ", "#"))]
        for start in range(len(lines) - SHARED_LINES + 1):
            places[tuple(lines[start : start + SHARED_LINES])].append((path, start))
    pairs = {(a, b) for found in places.values() for n, a in enumerate(found) for b in found[n + 1 :]}
    # A longer run is one pair of places, not one for each of its windows.
    return sum(((a[0], a[1] - 1), (b[0], b[1] - 1)) not in pairs for a, b in pairs)


def naming(sources: dict[Path, str], *words: str) -> int:
    """The number of files that name something."""
    return sum(any(word in text for word in words) for text in sources.values())


def main() -> None:
    """Print the counts."""
    tree = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    package = tree / "src" / "heedful"
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    sizes = sorted((len(text.splitlines()), path.name) for path, text in sources.items() if path.name != "__init__.py")
    walk = walks(package)
    same_names = shared_names(sources)
    counts = {
        "files on the walk of a sentence pair (train)": walk["train"],
        "files on the walk of a line (translate)": walk["translate"],
        "files": len(sources),
        "median lines of a file": median(size for size, _ in sizes),
        "lines of the longest file": f"{sizes[-1][0]} ({sizes[-1][1]})",
        "modules at the package's root": len([path for path in sources if path.parent == package]),
        "classes' names that stand for several": f"{len(same_names)} ({', '.join(same_names)})",
        f"pairs of places that share {SHARED_LINES} lines": repeats(sources),
        "files that name the task tagging": naming(sources, "tagging", "Tagger", "TaggerData"),
        "files that name the position scheme rotary": naming(sources, "rotary", "Rotary"),
    }
    for name, value in counts.items():
        print(f"{name:50} {value}")


if __name__ == "__main__":
    main()
