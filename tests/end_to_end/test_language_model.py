"""A language model from the command line: text in, text out."""

import json
from pathlib import Path

import pytest

SMALL = ["--set=model.width=32", "--set=model.max_length=32"]
SMALL += ["--set=model.stack={num_layers=2, dropout=0.0, attention={num_heads=4, num_key_value_heads=2}}"]
SMALL += ["--set=model.stack.feed_forward={inner_width=64}", "--set=training.batches.tokens_per_step=1024"]


@pytest.fixture(scope="module")
def model(run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counting")
    lines = [" ".join(str((start + n) % 10) for n in range(12)) + "\n" for start in range(1000)]
    (folder / "text.txt").write_text("".join(lines))
    arguments = ["--tokenizer", "characters", "--steps", "150", "--out", folder / "model"]
    run("train", "language-model", "--text", folder / "text.txt", *SMALL, *arguments)
    return folder / "model"


def test_it_has_learned_to_count(run, model: Path) -> None:
    text = run("generate", model, "3 4 5 ", "--max-tokens", "7", "--temperature", "0").stdout.decode()
    assert text == "6 7 8 9\n"


def test_samples_and_stops(run, model: Path) -> None:
    text = run("generate", model, "3 4 ", "--samples", "3", "--stop", "8").stdout.decode()
    assert len(text.split("\n\n")) == 3 and "8" not in text


def test_a_prompt_from_standard_input_longer_than_the_context(run, model: Path) -> None:
    prompt = ("0 1 2 3 4 5 6 7 8 9 " * 5).encode()
    result = run("generate", model, "--max-tokens", "5", "--temperature", "0", stdin=prompt)
    assert result.stdout == b"0 1 2\n"
    assert b"only the last 16 are used" in result.stderr


def test_interactive_ends_with_the_input(run, model: Path) -> None:
    result = run("generate", model, "--interactive", "--max-tokens", "3", "--temperature", "0", stdin=b"1 2 \n5 6 \n")
    assert result.stdout.decode().split("\n")[:2] == ["3 4", "7 8"]


def test_evaluation_over_the_whole_text(run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("4 5 6 7 8 9 0 1 2 3 4 5\n5 6 7 8 9 0 1 2 3 4 5 6\n")
    text = run("evaluate", model, "--text", tmp_path / "a.txt").stdout.decode()
    assert "perplexity" in text and "bits per byte" in text
    assert b"give --text" in run("evaluate", model, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "language-model", "--out", "x"], b"give --text"),
        (
            ["train", "language-model", "--text", "none.txt", "--out", "x"],
            b"heedful: there is no file none.txt: check the name and the folder\n",
        ),
        (["train", "language-model", "--text", "none.txt", "--out", "x", "--preset", "gpt2_smal"], b"'gpt2_small'"),
        (["train", "language-model", "--text", "none.txt", "--out", "x", "--preset", "translation_tiny"], b"preset"),
        (["generate", "nowhere", "x"], b"no model folder nowhere"),
    ],
)
def test_mistakes_are_named(run, arguments: list[str], message: bytes) -> None:
    assert message in run(*arguments, code=2).stderr


def test_evaluation_cuts_documents_as_training_did(run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"the dog {n} ran\n" for n in range(200)))
    (tmp_path / "test.txt").write_text("the dog 7 ran\n\nthe dog ran\n")
    options = ["--document", "line", "--tokenizer", "characters", "--steps", "2", "--set", "model.width=16"]
    run("train", "language-model", "--text", tmp_path / "a.txt", "--out", tmp_path / "m", *options)

    def figures(*more: str) -> dict:
        return json.loads(run("evaluate", tmp_path / "m", "--text", tmp_path / "test.txt", "--json", *more).stdout)

    by_lines, by_file = figures("--document", "line"), figures("--document", "file")
    assert by_lines["tokens"] == 13 + 1 + 11 + 1 and by_file["tokens"] == 27 + 1
    assert figures() == by_lines
    assert "│ documents" in (told := run("info", tmp_path / "m").stdout.decode()) and "lines" in told
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config.pop("document") == "line"
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))  # as older versions wrote it
    assert figures() == by_file
    assert b"taken to be files" in run("info", tmp_path / "m").stdout
