"""Classifiers, taggers and masked language models, from files to answers, as users run them."""

import io
import json
import random
from pathlib import Path

import numpy as np
import pytest

GOOD, BAD = ["lovely", "great", "superb", "fine"], ["awful", "poor", "dull", "bad"]
OTHERS = ["the", "film", "was", "a", "story", "with", "music", "and", "actors"]
ANIMALS = {"dog": "barks", "cat": "meows", "cow": "moos", "bird": "sings"}
TINY = ["--set=model.width=32", "--set=model.stack.attention.num_heads=2", "--set=model.stack.dropout=0.0"]
TINY += ["--set=training.schedule.learning_rate=0.01", "--set=training.saving.validations=2"]
# All of these tests share three trained models.
pytestmark = pytest.mark.xdist_group("encoders")


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
    sounds = [f"the {animal} {sound} ." for animal, sound in draw.choices(list(ANIMALS.items()), k=300)]
    (found / "text.txt").write_text("\n".join(sounds) + "\n")
    return found


@pytest.fixture(scope="module")
def classifier(run, folder: Path) -> Path:
    run("train", "classifier", "--data", folder / "train.tsv", "--out", folder / "c", "--steps", "40", *TINY)
    return folder / "c"


@pytest.fixture(scope="module")
def tagger(run, folder: Path) -> Path:
    run("train", "tagger", "--data", folder / "train.conll", "--out", folder / "t", "--steps", "40", *TINY)
    return folder / "t"


@pytest.fixture(scope="module")
def masked(run, folder: Path) -> Path:
    arguments = ["--text", folder / "text.txt", "--whole-words", "--out", folder / "m", "--steps", "120"]
    run("train", "masked-language-model", *arguments, *TINY)
    return folder / "m"


def test_a_classifier_learns_and_keeps_the_line_contract(run, classifier: Path, folder: Path) -> None:
    figures = json.loads(run("evaluate", classifier, "--data", folder / "test.tsv", "--json").stdout)
    assert figures["accuracy"] >= 0.97 and figures["macro_f1"] >= 0.97
    assert sum(map(sum, figures["confusion"])) == figures["count"] == 100
    lines = b"a lovely film\n\n \r\nan awful\tstory\n\xff bad music"
    result = run("classify", classifier, stdin=lines)
    rows = [line.split("\t") for line in result.stdout.decode().split("\n")[:-1]]
    assert [row[0] for row in rows] == ["good", "", "", "bad", "bad"]
    assert all(0.5 < float(row[1]) <= 1 for row in rows if len(row) > 1)
    assert b"line 5 is not valid UTF-8" in result.stderr
    first = run("classify", classifier, "--top", "2", "--json", "a lovely film").stdout
    assert [each["label"] for each in json.loads(first)["labels"]] == ["good", "bad"]
    assert b"labels (rows)" in run("evaluate", classifier, "--data", folder / "test.tsv").stdout


def test_output_does_not_depend_on_the_batch_size(run, classifier: Path) -> None:
    lines = "".join(f"{text}\n" for _, text in reviews(300, seed=6)).encode()
    found = {run("classify", classifier, "--batch-size", size, stdin=lines).stdout for size in ("1", "7", "64")}
    assert len(found) == 1


def test_a_tagger_learns(run, tagger: Path, folder: Path) -> None:
    assert json.loads(run("evaluate", tagger, "--data", folder / "test.conll", "--json").stdout)["accuracy"] >= 0.98
    assert run("tag", tagger, stdin=b"a lovely film\n\nawful music\n").stdout == b"O PLUS O\n\nMINUS O\n"


def test_hidden_words_are_guessed(run, masked: Path) -> None:
    lines = run("fill", masked, "the [MASK] barks . the cat [MASK] .", "--top", "1").stdout.decode().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["dog", "", "meows"]


def test_vectors(run, masked: Path, tmp_path: Path) -> None:
    lines = b"the dog barks .\n\nthe cat meows .\n"
    rows = [json.loads(line) for line in run("embed", masked, stdin=lines).stdout.splitlines()]
    run("embed", masked, "--out", tmp_path / "v.npy", stdin=lines)
    found = np.load(io.BytesIO((tmp_path / "v.npy").read_bytes()))
    assert found.shape == (3, 32)
    np.testing.assert_allclose(found, rows, atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-6)


def test_a_classifier_starts_from_a_masked_language_model(run, masked: Path, folder: Path) -> None:
    arguments = ["--data", folder / "train.tsv", "--from", masked, "--steps", "3"]
    text = run("train", "classifier", *arguments, "--out", folder / "started").stderr.decode()
    assert "starting from" in text and "head, which starts afresh" in text
    config, other = (json.loads((each / "config.json").read_text()) for each in (folder / "started", masked))
    assert config["model"] | {"head": "masked", "num_labels": 0} == other["model"]
    assert (folder / "started" / "tokenizer.json").read_bytes() == (masked / "tokenizer.json").read_bytes()


@pytest.mark.parametrize("job", ["classifier", "masked-language-model"])
def test_stopped_and_continued_is_bit_for_bit_uninterrupted(run, job: str, folder: Path, tmp_path: Path) -> None:
    data = ["--data", folder / "train.tsv"] if job == "classifier" else ["--text", folder / "text.txt"]
    settings = [*TINY, "--set=model.stack.dropout=0.3", "--set=training.batches.tokens_per_step=900"]
    settings += ["--set=training.saving={checkpoint_seconds=0.0, validations=2}", "--set=training.machine.workers=2"]

    def train(out: str) -> str:
        command = ("train", job, *data, "--out", tmp_path / out, "--steps", "12", *settings)
        return run(*command).stderr.decode()

    train("whole")
    train("broken")
    kept = sorted((tmp_path / "broken" / "run" / "checkpoints").iterdir())
    assert len(kept) >= 2
    import shutil

    shutil.rmtree(kept[-1])  # as if it had been killed before the last step
    assert "continuing after step 11" in train("broken")
    for name in ("model.safetensors", "run/checkpoints/step-000000012/model.safetensors"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "classifier", "--out", "o"], "no data: give --data"),
        (["train", "classifier", "--data", "missing.tsv", "--out", "o"], "missing.tsv"),
        (["train", "tagger", "--data", "{train}", "--from", "nowhere", "--out", "o"], "no model folder nowhere"),
        (["train", "classifier", "--data", "{text}", "--out", "{new}"], "No example is left for training"),
        (["train", "classifier", "--data", "{train}", "--preset", "gpt2_small", "--out", "o"], "unknown preset"),
        (["classify", "{tagger}", "text"], "holds no classifier: its task is 'tagging'"),
        (["classify", "{classifier}", "--top", "0", "text"], "--top is 0"),
        (["fill", "{classifier}", "a [MASK]"], "holds no masked language model"),
        (["tag", "{classifier}"], "holds no tagger"),
        (["evaluate", "{classifier}"], "give --data"),
        (["evaluate", "{classifier}", "--data", "{other}"], "line 2: the label 'goodd'"),
    ],
)
def test_mistakes(run, arguments: list[str], message: str, classifier, tagger, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other.tsv").write_text("good\tfine\ngoodd\tfine\n")
    places = {"train": folder / "train.tsv", "text": folder / "text.txt", "new": tmp_path / "new"}
    places |= {"classifier": classifier, "tagger": tagger, "other": tmp_path / "other.tsv"}
    text = run(*(argument.format(**places) for argument in arguments), code=2).stderr.decode()
    assert message in text
    assert text.splitlines()[-1].startswith("heedful: ")
