"""Shows that the tests that are new since a commit fail there, and why: a test that cannot fail tests nothing.

    python tools/fails_before.py COMMIT [tests/unit/test_x.py ...]

The commit is checked out in its own folder, with the tests of this tree over it. Of each test function that the commit
does not have, all cases run there; a function counts as failing if one of its cases does, and as skipped if all are.
Exits with 1 if a function passes.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Seconds for the tests of a file, and for one function of a file that took longer.
FILE_SECONDS, FUNCTION_SECONDS = 400, 100


def functions(source: str) -> set[str]:
    """The names of the test functions of a file."""
    found = ast.parse(source).body
    return {each.name for each in found if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")}


def git(*arguments: str) -> str:
    """What git prints."""
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout


def new_tests(commit: str, files: list[str]) -> dict[str, list[str]]:
    """File -> the test functions that the commit does not have."""
    known = set(git("ls-tree", "-r", "--name-only", commit).split("\n"))
    found = {}
    for file in files or sorted(str(each.relative_to(ROOT)) for each in (ROOT / "tests").rglob("test_*.py")):
        before = functions(git("show", f"{commit}:{file}")) if file in known else set()
        names = sorted(functions((ROOT / file).read_text(encoding="utf-8")) - before)
        if names and not file.startswith("tests/weights"):
            found[file] = names
    return found


def run(folder: Path, tests: list[str], seconds: float) -> dict[str, str]:
    """Test function -> how it went, from all its cases; empty if time ran out."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junit-xml={report.name}", *tests]
        try:
            subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=seconds)
            cases = list(ElementTree.parse(report.name).iter("testcase"))
        except (subprocess.TimeoutExpired, ElementTree.ParseError):
            return {}
    outcomes: dict[str, str] = {}
    for case in cases:
        name = case.get("name", "").partition("[")[0]
        fault = next((each for each in case if each.tag in ("failure", "error")), None)
        skipped = any(each.tag == "skipped" for each in case)
        if fault is not None:
            outcomes[name] = f"fails: {' '.join((fault.get('message') or '').split())[:150]}"
        elif name not in outcomes or (outcomes[name] == "skipped" and not skipped):
            outcomes[name] = "skipped" if skipped else "PASSES"
    return outcomes


def outcomes_of(folder: Path, file: str, names: list[str]) -> dict[str, str]:
    """How the test functions of a file fare there."""
    found = run(folder, [f"{file}::{name}" for name in names], FILE_SECONDS)
    if found:
        return {name: found.get(name, "fails: the file cannot be imported") for name in names}
    late = f"fails: not done after {FUNCTION_SECONDS} s"
    return {name: run(folder, [f"{file}::{name}"], FUNCTION_SECONDS).get(name, late) for name in names}


def main() -> int:
    """Check out the commit, run what is new, and report it."""
    commit, *files = sys.argv[1:]
    found = new_tests(commit, files)
    passing = 0
    with tempfile.TemporaryDirectory() as inside:
        folder = Path(inside, "before")
        git("worktree", "add", "--detach", str(folder), commit)
        try:
            for part in ("tests", "tools", "pyproject.toml"):
                subprocess.run(["rm", "-rf", str(folder / part)], check=True)
                subprocess.run(["cp", "-r", str(ROOT / part), str(folder / part)], check=True)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                results = pool.map(lambda item: (item[0], outcomes_of(folder, *item)), found.items())
                for file, outcomes in results:
                    print(file)
                    for name, outcome in outcomes.items():
                        passing += outcome == "PASSES"
                        print(f"    {name}\n        {outcome}", flush=True)
        finally:
            git("worktree", "remove", "--force", str(folder))
    print(f"{sum(map(len, found.values()))} new test functions, {passing} of which pass at {commit}")
    return 1 if passing else 0


if __name__ == "__main__":
    sys.exit(main())
