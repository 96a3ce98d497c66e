"""What describes a model, and what turns texts into ids and answers into texts, is imported where torch is not."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "heedful"
ARCHIVES = sorted((ROOT / "tests" / "fixtures" / "written_before").glob("*.tar.xz"))
# Patterns of files; all others may import torch when they are imported.
WITHOUT_TORCH = (
    "*.py",
    "claims/*.py",
    "cli/*.py",
    "core/*.py",
    "decoding/hypothesis.py",
    "decoding/options.py",
    "decoding/planning.py",
    "decoding/progress.py",
    "decoding/run.py",
    "decoding/slots.py",
    "doctor/*.py",
    "inspection/*.py",
    "inspection/attention/[!er]*.py",  # not entropy, recording
    "inspection/attention/rollout.py",
    "inspection/run/*.py",
    "layers/__init__.py",
    "machine/*.py",
    "models/__init__.py",
    "models/memory_plan.py",
    "models/parameter_count.py",
    "prepared/*.py",
    "server/*.py",
    "server/*/*.py",
    "settings/*.py",
    "tasks/computing.py",
    "tasks/declaration.py",
    "tasks/direct_*.py",
    "tasks/engines.py",
    "tasks/loading.py",
    "tasks/registry.py",
    "tasks/remarks.py",
    "tasks/tracing.py",
    "tasks/*/about.py",
    "tasks/*/evaluation.py",
    "tasks/*/pipeline.py",
    "tasks/*/seam.py",
    "tasks/*/verbs.py",
    "tasks/*/with_core.py",
    "tasks/labelling/classifier.py",
    "tasks/labelling/tagger.py",
    "tasks/language_modeling/generation.py",
    "tasks/translation/alignment.py",
    "tasks/translation/line*.py",
    "tasks/translation/next_words.py",
    "tasks/translation/scoring.py",
    "tasks/translation/shortlist.py",
    "text/*.py",
)
BLOCKED = "import sys\nsys.modules['torch'] = None\n"


def without_torch(program: str, *arguments: str) -> str:
    """What a program prints that runs where torch cannot be imported."""
    command = [sys.executable, "-c", BLOCKED + program, *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def modules() -> list[str]:
    files = {file for pattern in WITHOUT_TORCH for file in PACKAGE.glob(pattern)} - {PACKAGE / "__main__.py"}
    parts = [file.relative_to(PACKAGE.parent).with_suffix("").parts for file in sorted(files)]
    return [".".join(part for part in each if part != "__init__") for each in parts]


def test_what_using_a_model_needs_is_imported_without_torch() -> None:
    program = "import importlib\nfor name in sys.argv[1:]: importlib.import_module(name)\nprint(len(sys.argv))"
    names = modules()
    assert int(without_torch(program, *names)) == len(names) + 1 > 150


def test_every_pattern_has_files() -> None:
    for pattern in WITHOUT_TORCH:
        assert list(PACKAGE.glob(pattern)), pattern


def test_settings_are_read_and_written_without_torch(tmp_path: Path) -> None:
    assert ARCHIVES
    folders = []
    for path in ARCHIVES:
        with tarfile.open(path) as archive:
            archive.extractall(tmp_path / path.name, filter="data")
        folders.append(str(tmp_path / path.name / "finished"))
    program = """
import json
from pathlib import Path
from heedful.config import to_dict
from heedful.model_folder import check_model_folder
configs = [check_model_folder(Path(folder)) for folder in sys.argv[1:]]
print(json.dumps([{**to_dict(each), "bytes": each.model.activation_bytes()} for each in configs]))
"""
    for folder, found in zip(folders, json.loads(without_torch(program, *folders)), strict=True):
        assert found.pop("bytes") > 0
        written = json.loads(Path(folder, "config.json").read_text())
        assert found == filled_up(written, found)


def filled_up(written: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """What an earlier heedful wrote, with the settings that it did not know."""
    tables = {name: filled_up(value, found[name]) for name, value in written.items() if isinstance(value, dict)}
    return {**found, **written, **tables}


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("heedful.train", "heedful.train"),
        ("heedful.build", "heedful.build"),
        ("heedful.models.EncoderDecoder", "heedful.models.EncoderDecoder"),
        ('heedful.load(sys.argv[1], engine="torch")', "loading a model"),
    ],
)
def test_python_says_what_needs_torch(program: str, what: str, untrained_model: Path) -> None:
    whole = f"import heedful\ntry: {program}\nexcept heedful.UserError as error: print(error)"
    expected = f"{what} needs PyTorch, which is not installed: pip install 'heedful[train]'\n"
    assert without_torch(whole, str(untrained_model)) == expected


def test_settings_of_layers_and_models_are_public_names_without_torch() -> None:
    program = "from heedful.layers import StackConfig\nfrom heedful.models import DecoderOnlyConfig\n"
    program += "print(DecoderOnlyConfig(stack=StackConfig(num_layers=3)).summary())"
    assert without_torch(program).startswith("3 layers, width 768")
