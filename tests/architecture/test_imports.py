"""Imports point one way, and files stay small."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "heedful"
FILES = sorted(PACKAGE.rglob("*.py"))

# What a part may import of the package, apart from itself and the small files at the package's root.
WEIGHTS = {"weights_index", "weights_seal", "weights_writer"}
COMMON = {"errors", "config", "files", "lazy_names", "splitmix", "storage", *WEIGHTS, "__version__"}
USING = {"machine", "settings", "layers", "models", "text", "decoding"}
MAKING = {*USING, "prepared", "tasks", "model_folder", "inspection", "presets"}
ALLOWED = {
    "machine": set(),
    "core": {"machine", "settings", "text", "decoding"},
    "text": set(),
    "settings": {"text"},
    "layers": {"settings"},
    "layers/positions": {"settings"},
    "presets": {"settings", "models", "training"},  # of the training its settings alone
    "prepared": {"text"},
    "models": {"settings", "layers", "machine", "text"},
    "inspection": {"layers", "machine"},
    "inspection/attention": {"layers", "machine"},
    "inspection/explain": {"layers", "machine"},
    "inspection/run": set(),
    "inspection/trace": {"layers", "machine"},
    "decoding": {"layers", "models", "text"},
    "tasks": {*USING, "core", "prepared", "inspection", "model_folder"},
    "interop": {*USING, "tasks", "model_folder"},
    "training": MAKING,
    "training/parallel": MAKING,
    "planning": {*MAKING, "training"},
    "claims": {"machine", "inspection"},
    "claims/learning": {"layers", "models", "settings"},
    "claims/measured": {"layers", "models", "settings", "prepared", "tasks"},
    "doctor": {*MAKING, "training", "core"},
    "server": {"tasks"},  # of the tasks what computes, as settings
    "server/front": {"server", "machine", "decoding", "tasks"},  # of decoding the bounds of its options
    "server/worker": {"server", "core", "machine", "models", "text", "decoding", "tasks", "model_folder"},
    "cli": {*MAKING, "training", "server", "interop", "doctor", "planning", "claims"},
}
# A task's folder may import what the part "tasks" may; its demo trains.
TASKS = [path for path in sorted((PACKAGE / "tasks").iterdir()) if path.is_dir() and path.name[0] != "_"]


def imported_parts(file: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "heedful":
            parts |= {node.module.split(".")[1]} if "." in node.module else {alias.name for alias in node.names}
    return parts


@pytest.mark.parametrize("part", ALLOWED)
def test_imports_point_one_way(part: str) -> None:
    for file in sorted((PACKAGE / part).glob("*.py")):
        assert imported_parts(file) <= ALLOWED[part] | COMMON | {part.partition("/")[0]}, file


@pytest.mark.parametrize("folder", TASKS, ids=lambda folder: folder.name)
def test_imports_of_a_task_point_one_way(folder: Path) -> None:
    for file in sorted(folder.glob("*.py")):
        more = {"training"} if file.name == "demo.py" else set()
        assert imported_parts(file) <= ALLOWED["tasks"] | COMMON | {"tasks"} | more, file


def test_every_part_has_a_rule() -> None:
    parts = {str(path.parent.relative_to(PACKAGE)) for path in FILES}
    tasks = {str(path.relative_to(PACKAGE)) for path in TASKS}
    assert parts - tasks - {"."} == set(ALLOWED)


def test_no_layer_and_no_model_knows_of_other_processes() -> None:
    for part in ("settings", "layers", "layers/positions", "models", "tasks"):
        for file in sorted((PACKAGE / part).rglob("*.py")):
            assert "torch.distributed" not in file.read_text(encoding="utf-8"), file


def test_the_process_that_speaks_http_does_without_torch() -> None:
    program = "import sys\nimport heedful.server.front.serve\nprint('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert result.stdout.split() == [b"False"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_files_stay_small(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 300
