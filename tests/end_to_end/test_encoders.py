"""Classifiers, taggers and masked language models, from files to answers, as users run them."""

import io
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from heedful.cli.main import main

GOOD, BAD = ["lovely", "great", "superb", "fine"], ["awful", "poor", "dull", "bad"]
OTHERS = ["the", "film", "was", "a", "story", "with", "music", "and", "actors"]
ANIMALS = {"dog": "barks", "cat": "meows", "cow": "moos", "bird": "sings"}
TINY = ["--set=model.width=32", "--set=model.stack.attention.num_heads=2", "--set=model.stack.dropout=0.0"]
TINY += ["--set=training.schedule.learning_rate=0.01", "--set=training.saving.validations=2"]
# All of these tests share three trained models.
Command = Callable[..., tuple[str, str]]


def call(*arguments: object, code: int = 0) -> None:
    """Run the command in this process, which is faster than in one of its own, and check its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    assert ended.value.code == code


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run the command with some standard input; give what it wrote to standard output and standard error."""

    def run_command(*arguments: object, stdin: bytes = b"", code: int = 0) -> tuple[str, str]:
        (tmp_path / "stdin").write_bytes(stdin)
        capsys.readouterr()
        with (tmp_path / "stdin").open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            call(*arguments, code=code)
        written = capsys.readouterr()
        return written.out, written.err

    return run_command


def reviews(count: int, seed: int) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        label, telling = draw.choice([("good", GOOD), ("bad", BAD)])
        words = draw.choices(OTHERS, k=draw.randint(2, 11))
        words.insert(draw.randrange(len(words)), draw.choice(telling))
        found.append((label, " ".join(words)))
    return found


def tag_of(word: str) -> str:
    return "PLUS" if word in GOOD else "MINUS" if word in BAD else "O"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("encoders")
    lines = reviews(400, seed=1)
    (found / "train.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in lines))
    (found / "test.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in reviews(100, seed=2)))
    for name, seed in (("train", 3), ("test", 4)):
        sentences = ("".join(f"{word}\t{tag_of(word)}\n" for word in text.split()) for _, text in reviews(200, seed))
        (found / f"{name}.conll").write_text("\n".join(sentences))
    draw = random.Random(5)
    sounds = [
        f"the {draw.choice(GOOD + BAD)} {animal} {sound} {draw.choice(OTHERS)} ."
        for animal, sound in draw.choices(list(ANIMALS.items()), k=400)
    ]
    (found / "text.txt").write_text("\n".join(sounds) + "\n")
    return found


@pytest.fixture(scope="module")
def classifier(folder: Path) -> Path:
    call("train", "classifier", "--data", folder / "train.tsv", "--out", folder / "c", "--steps", "40", *TINY)
    return folder / "c"


@pytest.fixture(scope="module")
def tagger(folder: Path) -> Path:
    call("train", "tagger", "--data", folder / "train.conll", "--out", folder / "t", "--steps", "40", *TINY)
    return folder / "t"


@pytest.fixture(scope="module")
def masked(folder: Path) -> Path:
    arguments = ["--text", folder / "text.txt", "--whole-words", "--out", folder / "m", "--steps", "120"]
    call("train", "masked-language-model", *arguments, *TINY)
    return folder / "m"


def test_a_classifier_learns(command: Command, classifier: Path, folder: Path) -> None:
    figures = json.loads(command("evaluate", classifier, "--data", folder / "test.tsv", "--json")[0])
    assert figures["accuracy"] >= 0.97 and figures["macro_f1"] >= 0.97
    assert sum(map(sum, figures["confusion"])) == figures["count"] == 100
    assert {each["name"]: each["count"] for each in figures["per_label"]}.keys() == {"good", "bad"}
    assert figures["weighted_average"]["recall"] == pytest.approx(figures["accuracy"])
    text = command("evaluate", classifier, "--data", folder / "test.tsv")[0]
    assert "labels (rows)" in text and "precision  recall      F1" in text and "weighted average" in text


def test_as_many_lines_out_as_in(run, classifier: Path) -> None:
    result = run("classify", classifier, stdin=b"a lovely film\n\n \r\nan awful\tstory\n\xff bad music")
    rows = [line.split("\t") for line in result.stdout.decode().split("\n")[:-1]]
    assert [row[0] for row in rows] == ["good", "", "", "bad", "bad"]
    assert all(0.5 < float(row[1]) <= 1 for row in rows if len(row) > 1)
    assert b"line 5 is not valid UTF-8" in result.stderr


def test_several_labels_of_a_given_text(command: Command, classifier: Path) -> None:
    first = command("classify", classifier, "--top", "2", "--json", "a lovely film")[0]
    assert [each["label"] for each in json.loads(first)["labels"]] == ["good", "bad"]


def test_output_does_not_depend_on_the_batch_size(command: Command, classifier: Path) -> None:
    lines = "".join(f"{text}\n" for _, text in reviews(300, seed=6)).encode()
    found = {command("classify", classifier, "--batch-size", size, stdin=lines)[0] for size in (1, 7, 64)}
    assert len(found) == 1


def test_a_tagger_learns(command: Command, tagger: Path, folder: Path) -> None:
    assert json.loads(command("evaluate", tagger, "--data", folder / "test.conll", "--json")[0])["accuracy"] >= 0.98
    assert command("tag", tagger, stdin=b"a lovely film\n\nawful music\n")[0] == "O PLUS O\n\nMINUS O\n"


def test_hidden_words_are_guessed(command: Command, masked: Path) -> None:
    assert command("fill", masked, "the great [MASK] barks and .", "--top", "1")[0].startswith("dog\t")
    assert command("fill", masked, "the dull cat [MASK] a .", "--top", "1")[0].startswith("meows\t")
    groups = command("fill", masked, "[MASK] cow [MASK]", "--top", "3", "--json")[0].splitlines()
    assert [len(json.loads(group)) for group in groups] == [3, 3]


def test_vectors(command: Command, masked: Path, tmp_path: Path) -> None:
    lines = b"the dog barks .\n\nthe cat meows .\n"
    rows = [json.loads(line) for line in command("embed", masked, stdin=lines)[0].splitlines()]
    command("embed", masked, "--out", tmp_path / "v.npy", stdin=lines)
    found = np.load(io.BytesIO((tmp_path / "v.npy").read_bytes()))
    assert found.shape == (3, 32)
    np.testing.assert_allclose(found, rows, atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("job", "option", "file", "head"),
    [
        ("classifier", "--data", "train.tsv", "head, which starts from scratch"),
        ("tagger", "--data", "train.conll", "head, which starts from scratch"),
        ("masked-language-model", "--text", "text.txt", "all weights"),
    ],
)
def test_every_job_of_an_encoder_starts_from_a_masked_language_model(
    command: Command, masked: Path, folder: Path, job: str, option: str, file: str, head: str
) -> None:
    out = folder / f"started-{job}"
    still = ["--steps", "2", "--set=training.schedule.learning_rate=0.0"]
    text = command("train", job, option, folder / file, "--from", masked, *still, "--out", out)[1]
    assert "starting from" in text and head in " ".join(text.split())
    config, other = (json.loads((each / "config.json").read_text()) for each in (out, masked))
    assert config["model"] | {"head": "masked", "num_labels": 0} == other["model"]
    assert (out / "tokenizer.json").read_bytes() == (masked / "tokenizer.json").read_bytes()
    before, after = (load_file(each / "model.safetensors") for each in (masked, out))
    common = [name for name in after if job.startswith("masked") or not name.startswith("output.")]
    assert len(common) > 20 and all(np.array_equal(after[name], before[name]) for name in common)


def test_a_classifier_of_pairs_that_starts_from_a_masked_language_model(
    command: Command, masked: Path, folder: Path
) -> None:
    draw = random.Random(7)
    for name, count in (("train", 331), ("valid", 61)):
        pairs = [(draw.choice(GOOD + BAD), draw.choice(GOOD + BAD)) for _ in range(count)]
        rows = [f"{'rises' if a in BAD and b in GOOD else 'stays'}\t{a} film\t{b} story\n" for a, b in pairs]
        (folder / f"pairs-{name}.tsv").write_text("".join(rows))
    data, valid, out = folder / "pairs-train.tsv", folder / "pairs-valid.tsv", folder / "pairs"
    arguments = ["--data", data, "--valid-data", valid, "--out", out, "--set=training.schedule.learning_rate=0.01"]
    command("train", "classifier", "--from", masked, "--steps", 61, *arguments)
    figures = json.loads(command("evaluate", out, "--data", valid, "--json")[0])
    assert f"| accuracy | {figures['accuracy']:.4f} |" in (out / "README.md").read_text()
    labels, texts = zip(*(line.split("\t", 1) for line in valid.read_text().splitlines()), strict=True)
    answers = command("classify", out, stdin="".join(f"{text}\n" for text in texts).encode())[0].splitlines()
    right = sum(answer.split("\t")[0] == label for answer, label in zip(answers, labels, strict=True))
    assert figures["count"] == 61 and right / 61 == pytest.approx(figures["accuracy"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "classifier", "--out", "o"], "no data: give --data"),
        (["train", "classifier", "--data", "missing.tsv", "--out", "o"], "missing.tsv"),
        (["train", "tagger", "--data", "{train}", "--from", "nowhere", "--out", "o"], "no model folder nowhere"),
        (["train", "classifier", "--data", "{text}", "--out", "{new}"], "expected a label, a tab and a text per line"),
        (["train", "classifier", "--data", "{train}", "--preset", "gpt2_small", "--out", "o"], "unknown preset"),
        (["classify", "{tagger}", "text"], "holds no classifier: its task is 'tagging'"),
        (["classify", "{classifier}", "--top", "0", "text"], "--top is 0"),
        (["fill", "{classifier}", "a [MASK]"], "holds no masked language model"),
        (["tag", "{classifier}"], "holds no tagger"),
        (["evaluate", "{classifier}"], "give --data"),
        (
            ["evaluate", "{classifier}", "--data", "{other}"],
            "knows none of the labels of this test set, which begins with 'goodd'",
        ),
    ],
)
def test_mistakes(
    command: Command, arguments: list[str], message: str, classifier, tagger, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "other.tsv").write_text("goodd\tfine\n")
    places = {"train": folder / "train.tsv", "text": folder / "text.txt", "new": tmp_path / "new"}
    places |= {"classifier": classifier, "tagger": tagger, "other": tmp_path / "other.tsv"}
    text = command(*(argument.format(**places) for argument in arguments), code=2)[1]
    assert message in text
    assert text.splitlines()[-1].startswith("heedful: ")
