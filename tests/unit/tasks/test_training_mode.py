"""A pipeline whose model somebody has put into training mode answers as ever, and leaves the model in that mode."""

from itertools import islice

import numpy as np
import pytest

import heedful

IMAGE = np.arange(9 * 7 * 3, dtype=np.uint8).reshape(9, 7, 3)
ANSWERS = {
    "translate": ("translation", lambda model: model.translate(["red dog", "dog"], alignment=True)),
    "score": ("translation", lambda model: model.score("red dog", "dog")),
    "alternatives": ("translation", lambda model: model.alternatives("red")),
    "generate": ("language_model", lambda model: model.generate("red", heedful.GenerationOptions(max_tokens=7))),
    "stream": ("language_model", lambda model: list(islice(model.stream("red"), 3))),
    "score text": ("language_model", lambda model: model.score("red dog")),
    "fill": ("masked_language_model", lambda model: model.fill("red [MASK]")),
    "classify": ("classification", lambda model: model.classify("red dog")),
    "tag": ("tagging", lambda model: model.tag("red dog")),
    "embed": ("encoder", lambda model: model.embed("red dog").tolist()),
    "images": ("image_classifier", lambda model: model.classify([IMAGE, IMAGE])),
    "maps": ("translation", lambda model: [each.weights.tolist() for each in model.attention("red", "dog").maps]),
    "maps of texts": ("classification", lambda model: [each.weights.tolist() for each in model.attention("red").maps]),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_those_of_evaluation_mode(small_folders, name: str) -> None:
    task, ask = ANSWERS[name]
    model = heedful.load(small_folders[task], engine="torch")
    expected = ask(model)
    model.model.train()
    frozen = next(iter(model.model.children())).eval()  # as is done with parts that are not to be trained
    modes = [each.training for each in model.model.modules()]
    assert ask(model) == expected
    assert [each.training for each in model.model.modules()] == modes and not frozen.training and model.model.training


def test_searches_in_a_loop_of_ones_own(small_folders) -> None:
    model = heedful.load(small_folders["translation"], engine="torch").model
    expected = heedful.beam(model, [[13, 17]]), heedful.greedy(model, [[13, 17]], 5)
    model.train()
    assert (heedful.beam(model, [[13, 17]]), heedful.greedy(model, [[13, 17]], 5)) == expected
    assert model.training
