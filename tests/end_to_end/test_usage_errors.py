"""A mistake in options or arguments is told as every other: one line that says what to do, and exit code 2."""

import pytest

from heedful.cli.main import VERBS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate"], "MODEL is missing: see heedful translate --help"),
        (["translate", "m", "--bema", "3"], "unknown option --bema of heedful translate: did you mean --beam?"),
        (["translate", "m", "--beam", "x"], "--beam: 'x' is not a valid integer: see heedful translate --help"),
        (["translate", "m", "--device", "cud"], "'cuda', 'mps': did you mean 'cuda'?"),
        (["translate", "m", "--device", "gpu9"], "--device: 'gpu9' is not one of 'auto', 'cpu', 'cuda', 'mps'"),
        (["translate", "m", "-5 degrees"], "a text that begins with - goes after --"),
        (["translate", "m", "--beam"], "option '--beam' requires an argument"),
        (["train"], "choose one of classifier, image-classifier, language-model"),
        (["train", "translaton"], "unknown command 'translaton' of heedful train: did you mean 'translation'?"),
        (["train", "translation", "--processes", "20000000"], "--processes is 20,000,000, but must be between 1 and"),
        (["transalte"], "unknown command 'transalte': did you mean 'translate'?"),
        (["export", "m", "o"], "--to is missing: choose one of ctranslate2"),
        (["info", "a", "b"], "got unexpected extra argument (b): see heedful info --help"),
        (["serve", "--port", "70000", "m"], "--port: 70000 is not in the range 0<=x<=65535"),
        (["demo", "visoin"], "did you mean 'vision'?"),
        (["--bogus"], "unknown option --bogus of heedful: see heedful --help"),
    ],
)
def test_one_line_that_says_what_to_do(run, arguments: list[str], message: str) -> None:
    result = run(*arguments, code=2)
    told = result.stderr.decode()
    assert message in told
    assert told.startswith("heedful: ") and told.count("\n") == 1 and result.stdout == b""
    assert "Usage:" not in told and "Error:" not in told


def test_without_arguments_there_is_help(run) -> None:
    result = run()
    assert result.stdout == run("--help").stdout and result.stderr == b""


def test_a_text_may_begin_with_a_hyphen(run, untrained_model) -> None:
    result = run("translate", untrained_model, "--max-length", "3", "--", "-5 degrees")
    assert result.stdout.count(b"\n") == 1


@pytest.mark.parametrize("verb", VERBS)
def test_every_help_has_examples(run, verb: str) -> None:
    text = run(verb, "--help").stdout.decode()
    assert f"\n  heedful {verb}" in text
