"""A setting that an option and `--set` give with different values is refused; a settings file gives way."""

from pathlib import Path
from typing import Any

import click
import pytest

from heedful.cli.options import with_options
from heedful.cli.train import SHARED, requested_run
from heedful.errors import UserError
from heedful.tasks.declaration import resolve
from heedful.tasks.registry import all_tasks


def asked(*arguments: str) -> Any:
    """What `heedful train translation` takes a command to mean."""
    training = all_tasks()["translation"].training
    assert training

    @click.command()
    @with_options((*SHARED, *training.options))
    def command(**options: Any) -> Any:
        return requested_run(resolve(training.data), options)

    return command.main(["--out", "x", "--tsv", "a.tsv", *arguments], standalone_mode=False)


@pytest.mark.parametrize(
    ("option", "assignment", "message"),
    [
        ("--steps 2", "training.limit.steps=4", "training.limit.steps is given twice: --steps and --set; give one"),
        ("--budget 5m", "training.limit.budget=6m", "training.limit.budget is given twice: --budget and --set"),
        ("--device cpu", "training.machine.device=cuda", "training.machine.device is given twice: --device and --set"),
        ("--source-language en", "data.source_language=fr", "data.source_language is given twice: --source-language"),
        ("--no-header", "data.header=true", "data.header is given twice: --no-header and --set"),
        ("--from a", "data.from_model=b", "data.from_model is given twice: --from and --set"),
        ("--preset a", "preset=b", "preset is given twice: --preset and --set"),
    ],
)
def test_two_values_are_refused(option: str, assignment: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        asked(*option.split(), "--set", assignment)


def test_the_same_value_twice_is_allowed() -> None:
    run = asked(
        "--steps", "2", "--set", "training.limit.steps=2", "--source-language", "en", "--set", "data.tsv=['a.tsv']"
    )
    assert run.settings == {"training": {"limit": {"steps": 2}}}
    assert asked("--steps", "2", "--set", "training.limit.epochs=3").settings["training"]["limit"]["epochs"] == 3


def test_a_settings_file_gives_way(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('[data]\nsource_language = "fr"\n[training.limit]\nsteps = 4\n', encoding="utf-8")
    run = asked("--config", str(file), "--steps", "2", "--source-language", "en")
    assert run.settings["training"]["limit"]["steps"] == 2 and run.data.source_language == "en"
    assert run.out == "x"
