"""What `heedful evaluate` says of models that it cannot measure."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from heedful.cli.evaluate import evaluate
from heedful.errors import UserError


@pytest.mark.parametrize(("task", "does"), [("masked_language_model", "guesses hidden words"), ("encoder", "embeds")])
def test_what_can_be_measured_is_said_in_words(small_folders: dict[str, Path], task: str, does: str) -> None:
    with pytest.raises(
        UserError, match=f"{does}.*, which `heedful evaluate` does not measure: .*translation.*tagging"
    ) as raised:
        CliRunner().invoke(evaluate, [str(small_folders[task]), "--text", "x"], catch_exceptions=False)
    assert task not in str(raised.value).replace(str(small_folders[task]), "")
    assert f"`heedful train classifier --from {small_folders[task]} ...` (or tagger) makes" in str(raised.value)
