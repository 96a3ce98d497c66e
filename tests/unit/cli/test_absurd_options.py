"""Numbers that no honest user asks for are one line that states the bound, before anything is computed."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

import heedful
from heedful.decoding import DecodingOptions, SamplingOptions
from heedful.errors import UserError

resource = pytest.importorskip("resource")  # which Windows does not have
ENGINES = ["core", "torch"]
SECONDS, MEGABYTES = 10, 200  # on a busy machine; without the bounds it is minutes, and gigabytes


def refused(run, *arguments: str | Path) -> str:
    begin = time.monotonic()
    result = run(*arguments, code=2)
    assert time.monotonic() - begin < SECONDS
    assert result.stdout == b""
    (line,) = result.stderr.decode().splitlines()
    assert line.startswith("heedful: ")
    return line


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam", "1000000"], "beam is 1000000, but must be a whole number from 1 to 1,024"),
        (["--max-length", "1000000000"], "max_length is 1000000000, but must be a whole number from 0 to 65,536"),
        (["--max-length", "9" * 30], "to 65,536"),
        (["--min-length", "1000000000"], "min_length is 1000000000, but must be a whole number from 0 to 65,536"),
        (["--nbest", "1000000"], "nbest is 1000000, but must be a whole number from 1 to 1,024"),
        (["--sample", "--nbest", "1000000"], "nbest is 1000000, but must be a whole number from 1 to 1,024"),
        (["--sample", "--top-k", "1000000000000"], "top_k is 1000000000000, but must be a whole number from 1 to"),
        (["--no-repeat-ngram", "100000000000"], "no_repeat_ngram is 100000000000, but must be"),
        (["--batch-size", "1000000000"], "--batch-size is 1000000000, but must be a whole number from 1 to 65,536"),
        (["--workers", "100000"], "--workers is 100000, but must be a whole number from 1 to 1,024"),
    ],
    ids=lambda each: " ".join(each)[:24] if isinstance(each, list) else "",
)
def test_translating(run, small_folders, engine: str, options: list[str], message: str) -> None:
    line = refused(run, "translate", small_folders["translation"], "red dog", "--engine", engine, *options)
    assert message in line


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-tokens", "1000000000"], "max_tokens is 1000000000, but must be a whole number from 1 to 1,000,000"),
        (["--samples", "1000000"], "samples is 1000000, but must be a whole number from 1 to 10,000"),
        (["--top-k", "1" + "0" * 30], "top_k is 1000"),
        (["--no-repeat-ngram", "100000000000"], "no_repeat_ngram is 100000000000"),
    ],
    ids=lambda each: " ".join(each)[:24] if isinstance(each, list) else "",
)
def test_generating(run, small_folders, engine: str, options: list[str], message: str) -> None:
    assert message in refused(run, "generate", small_folders["language_model"], "red", "--engine", engine, *options)


@pytest.mark.parametrize(
    ("verb", "task"), [("classify", "classification"), ("tag", "tagging"), ("embed", "encoder"), ("embed", "tagging")]
)
@pytest.mark.parametrize("value", ["0", "-1", "65537", "1" + "0" * 30])
def test_batches(run, small_folders, verb: str, task: str, value: str) -> None:
    line = refused(run, verb, small_folders[task], "red", "--batch-size", value)
    assert f"--batch-size is {value}, but must be a whole number from 1 to 65,536" in line


def test_batches_of_an_evaluation(run, small_folders, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("red dog\n")
    files = ["--source", tmp_path / "a", "--reference", tmp_path / "a"]
    line = refused(run, "evaluate", small_folders["translation"], *files, "--batch-size", "1000000000")
    assert "--batch-size is 1000000000" in line


RESOLUTIONS = [
    ("20000x1", "one side is more than 100 times as long as the other"),
    ("1x20000", "one side is more than 100 times as long as the other"),
    ("100000x100000", "it has more than 33,554,432 pixels"),
    ("2000", "an image would have 250,000 patches, more than 65,536"),
    ("9" * 30, "but must be a whole number from 1 to 33,554,432"),
    ("0", "resolution is 0, but must be a whole number from 1"),
]


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from PIL import Image

    file = tmp_path_factory.mktemp("picture") / "red.png"
    Image.new("RGB", (9, 7), "red").save(file)
    return file


@pytest.mark.parametrize(("resolution", "message"), RESOLUTIONS)
def test_resolutions(run, small_folders, picture: Path, tmp_path: Path, resolution: str, message: str) -> None:
    folder = small_folders["image_classifier"]
    assert message in refused(run, "classify", folder, picture, "--resolution", resolution)
    out = ["--image", picture, "--resolution", resolution, "--out", tmp_path / "page.html"]
    assert message in refused(run, "inspect", folder, *out)
    assert not (tmp_path / "page.html").exists()


def peak() -> float:
    """The most memory that this process has had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


@pytest.mark.parametrize("engine", ENGINES)
def test_from_python(small_folders, engine: str) -> None:
    translator = heedful.load(small_folders["translation"], engine=engine)
    writer = heedful.load(small_folders["language_model"], engine=engine)
    encoder = heedful.load(small_folders["encoder"], engine=engine)
    masked = heedful.load(small_folders["masked_language_model"], engine=engine)
    asked = [
        lambda: translator.translate("red", beam=10**6),
        lambda: translator.translate("red", nbest=10**6),
        lambda: translator.translate("red", DecodingOptions(max_length=10**9)),
        lambda: translator.translate("red", DecodingOptions(min_length=10**9)),
        lambda: translator.translate("red", DecodingOptions(max_extra=10**9)),
        lambda: translator.translate("red", DecodingOptions(nbest=10**6, sampling=SamplingOptions())),
        lambda: translator.translate("red", batch_size=10**9),
        lambda: translator.translate("red", batch_size=0),
        lambda: translator.alternatives("red", count=10**9),
        lambda: writer.generate("red", heedful.GenerationOptions(max_tokens=10**9)),
        lambda: writer.generate("red", heedful.GenerationOptions(samples=10**6)),
        lambda: writer.generate("red", heedful.GenerationOptions(top_k=10**20)),
        lambda: encoder.embed("red", batch_size=10**9),
        lambda: masked.fill("red [MASK]", 10**20),
        lambda: heedful.load(small_folders["translation"], engine=engine, max_length=10**9),
        lambda: heedful.greedy(translator.model, [[13]], 10**9),
    ]
    before, begin = peak(), time.monotonic()
    for ask in asked:
        with pytest.raises(UserError, match=r" is \d+, but must be a whole number from \d to [\d,]+$"):
            ask()
    assert time.monotonic() - begin < SECONDS and peak() - before < MEGABYTES


@pytest.mark.parametrize("resolution", [(20000, 1), 100000, 2000, 10**30, 0, -5, 2.5, "40", (40,), (40, 40, 40), None])
def test_resolutions_from_python(small_folders, resolution) -> None:
    classifier, image = heedful.load(small_folders["image_classifier"]), np.zeros((9, 7, 3), np.uint8)
    if resolution is None:
        assert classifier.classify([image]) == classifier.classify([image], (8, 8)) == classifier.classify([image], 8)
        return
    before = peak()
    with pytest.raises(UserError, match=r"^resolution is "):
        classifier.classify([image], resolution)
    assert peak() - before < MEGABYTES


def test_what_is_large_and_honest_is_taken(small_folders) -> None:
    """A beam of a thousand, as studies have it, and an image ten times as large as those of the training."""
    translator = heedful.load(small_folders["translation"])
    found = translator.translate("red", DecodingOptions(beam=1000, nbest=1000, max_length=3))
    assert len({tuple(each.tokens) for each in found.nbest}) == 1000
    classifier = heedful.load(small_folders["image_classifier"])
    assert classifier.classify([np.zeros((9, 7, 3), np.uint8)], (80, 56))
