"""Imports point one way, and files stay small."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "heedful"
FILES = sorted(PACKAGE.rglob("*.py"))

# What a part may import of the package, apart from itself and the small files that know nothing of models.
COMMON = {"errors", "config", "files", "special_tokens", "memory", "cores", "machine", "classification_metrics"}
COMMON |= {"__version__", "sentences", "training_lines", "segmentation", "storage"}
ALLOWED = {
    "layers": set(),
    "data": set(),
    "models": {"layers"},
    "inspection": {"layers", "models"},
    "decoding": {"layers", "models"},
    "tasks": {"layers", "models", "decoding", "data"},
    "interop": {"layers", "models", "decoding", "data", "tasks", "model_folder"},
    "jobs": {"layers", "models", "decoding", "data", "tasks", "model_folder"},
    "server": set(),
    "server/front": {"server", "cores"},
    "server/worker": {"server", "decoding", "models", "data", "pipelines", "model_folder"},
    "training": {"layers", "models", "inspection", "decoding", "data", "tasks", "jobs", "presets", "model_folder"},
}


def imported_parts(file: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "heedful":
            parts |= {node.module.split(".")[1]} if "." in node.module else {alias.name for alias in node.names}
    return parts


@pytest.mark.parametrize("part", ALLOWED)
def test_imports_point_one_way(part: str) -> None:
    for file in sorted((PACKAGE / part).glob("*.py")):
        assert imported_parts(file) <= ALLOWED[part] | COMMON | {part}, file


def test_the_process_that_speaks_http_does_without_torch() -> None:
    program = "import sys\nimport heedful.server.front.serve\nprint('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert result.stdout.split() == [b"False"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_files_stay_small(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 300
