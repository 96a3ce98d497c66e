"""What is not text, not an image or not options is refused by the name of its argument, with what was expected."""

import numpy as np
import pytest

import heedful
from heedful.errors import UserError

ENGINES = ["core", "torch"]


@pytest.fixture(scope="module", params=ENGINES)
def pipelines(request, small_folders):
    """A pipeline of each task by an engine; images are torch's."""
    engines = {"image_classifier": "torch"}
    return {
        task: heedful.load(folder, engine=engines.get(task, request.param)) for task, folder in small_folders.items()
    }


# task, what is called, the argument that its error names
CALLS = [
    ("translation", lambda model, value: model.translate(value), "texts"),
    ("translation", lambda model, value: model.score(value, ["red"]), "sources"),
    ("translation", lambda model, value: model.score(["red"], value), "targets"),
    ("language_model", lambda model, value: model.generate(value), "prompts"),
    ("language_model", lambda model, value: model.score(value), "texts"),
    ("masked_language_model", lambda model, value: model.fill(value), "text"),
    ("classification", lambda model, value: model.classify(value), "texts"),
    ("tagging", lambda model, value: model.tag(value), "sentences"),
    ("encoder", lambda model, value: model.embed(value), "texts"),
]
ONE = [
    ("translation", lambda model, value: model.translate("red", prefix=value), "prefix"),
    ("translation", lambda model, value: model.alternatives(value), "text"),
    ("translation", lambda model, value: model.alternatives("red", value), "prefix"),
    ("language_model", lambda model, value: list(model.stream(value)), "prompt"),
]
# Looking into attention needs torch's models.
LOOKS = ["translation", "language_model", "masked_language_model", "classification", "tagging", "encoder"]


def names(calls) -> list[str]:
    return [f"{task}-{argument}" for task, _, argument in calls]


@pytest.mark.parametrize("value", [None, 5, 2.5, b"red", bytearray(b"red"), {"red": "dog"}, object])
@pytest.mark.parametrize(("task", "call", "argument"), CALLS, ids=names(CALLS))
def test_what_is_not_texts(pipelines, task: str, call, argument: str, value: object) -> None:
    with pytest.raises(UserError, match=rf"^{argument} is .*: expected a string, ") as raised:
        call(pipelines[task], value)
    assert f"is {value!r}: " in str(raised.value)


@pytest.mark.parametrize("value", [None, 1, b"red", 0.5])
@pytest.mark.parametrize(("task", "call", "argument"), CALLS, ids=names(CALLS))
def test_what_is_not_text_in_a_list(pipelines, task: str, call, argument: str, value: object) -> None:
    with pytest.raises(UserError, match=rf"^(text|sentence) 2 of {argument} is .*: expected a string") as raised:
        call(pipelines[task], ["red [MASK]", value])
    assert f"is {value!r}: " in str(raised.value)


@pytest.mark.parametrize("value", [5, b"red", {"red": "dog"}, object])
@pytest.mark.parametrize(("task", "call", "argument"), ONE, ids=names(ONE))
def test_what_is_not_one_text(pipelines, task: str, call, argument: str, value: object) -> None:
    with pytest.raises(UserError, match=rf"^{argument} is .*: expected a string"):
        call(pipelines[task], value)


@pytest.mark.parametrize("task", LOOKS)
@pytest.mark.parametrize("value", [None, 5, b"red", ["red"]])
def test_what_cannot_be_looked_into(pipelines, task: str, value: object) -> None:
    with pytest.raises(UserError, match=r"^text is .*: expected a string"):
        pipelines[task].attention(value)
    if value is not None and task != "tagging":  # which takes no target at all
        with pytest.raises(UserError, match=r"^target is .*: expected a string"):
            pipelines[task].attention("red", value)


@pytest.mark.parametrize("pair", [("red",), ("red", "dog", "sun"), ("red", None), ()])
def test_pairs_are_of_two_texts(pipelines, pair: tuple) -> None:
    for call in (pipelines["classification"].classify, pipelines["encoder"].embed):
        for given, place in ((pair, "texts"), (["red", pair], "text 2 of texts")):
            with pytest.raises(UserError, match=rf"^{place} is \(.*\): expected a string, or a tuple of two$"):
                call(given)


def test_words_of_a_sentence(pipelines) -> None:
    with pytest.raises(UserError, match=r"^word 2 of sentence 1 of sentences is 7: expected a string$"):
        pipelines["tagging"].tag([["red", 7]])


@pytest.mark.parametrize("options", [5, {"beam": 2}, "beam"])
def test_what_is_not_options(pipelines, options: object) -> None:
    with pytest.raises(UserError, match=r"^options is .*: expected heedful\.DecodingOptions"):
        pipelines["translation"].translate("red", options)
    with pytest.raises(UserError, match=r"^options is .*: expected heedful\.GenerationOptions"):
        pipelines["language_model"].generate("red", options)


@pytest.mark.parametrize("stop", ["red", 5, None, ("red", 5)])
def test_what_is_not_stop_strings(stop: object) -> None:
    with pytest.raises(UserError, match=r"^stop is .*, but must be texts"):
        heedful.GenerationOptions(stop=stop)


@pytest.mark.parametrize("value", [None, 5, b"red", {"a": 1}])
def test_what_is_not_images(pipelines, value: object) -> None:
    with pytest.raises(
        UserError, match=r"^images is .*: expected a file name, an array, a tensor or an image of Pillow, or"
    ):
        pipelines["image_classifier"].classify(value)
    with pytest.raises(UserError, match=r"cannot be read as an image: it is .*: expected a file name, an array"):
        pipelines["image_classifier"].classify([value])
    with pytest.raises(UserError, match=r"cannot be read as an image: it is .*: expected a file name, an array"):
        pipelines["image_classifier"].attention(value)


def test_an_array_is_one_image_or_several(pipelines) -> None:
    """H W C, which has rows as N H W has images, is one."""
    classify = pipelines["image_classifier"].classify
    colours = np.random.default_rng(3).integers(0, 256, (5, 11, 7, 3), np.uint8)
    assert classify(colours[0]) == classify([colours[0]])[0]
    assert classify(colours) == classify(list(colours))
    grey = colours[..., 0]
    assert classify(grey[0]) == classify([grey[0]])[0] and classify(grey) == classify(list(grey))


def test_half_a_surrogate_pair_is_text(pipelines) -> None:
    """As a file name, or a line of a damaged file, may hold it."""
    assert isinstance(pipelines["translation"].translate("red \ud800").text, str)
    assert len(pipelines["encoder"].embed(["\udcff"])) == 1
    assert pipelines["language_model"].score("red \ud800").tokens > 1
