"""Settings that do not fit the weights to start from are refused before the data is read."""

from pathlib import Path
from typing import Any

import pytest

from heedful.config import merge
from heedful.errors import UserError
from heedful.tasks.image_classification.job import ImageData
from heedful.tasks.labelling.job import ClassifierData
from heedful.tasks.language_modeling.job import TextData
from heedful.tasks.translation.job import TranslationData
from heedful.training.resolve import check_settings
from heedful.training.run_config import RunConfig


def check(job: Any, model: dict[str, Any]) -> None:
    # As `train` does it, before it looks at any data.
    settings = {"model": model, "training": {"machine": {"device": "cpu"}}}
    check_settings(RunConfig("x", job, settings=merge(job.base_settings(), settings)))


def jobs(small_folders: dict[str, Path]) -> dict[str, Any]:
    return {
        "translation": TranslationData(from_model=str(small_folders["translation"])),
        "language_model": TextData(from_model=str(small_folders["language_model"])),
        "masked_language_model": ClassifierData(from_model=str(small_folders["masked_language_model"])),
        "image_classifier": ImageData(start_from=str(small_folders["image_classifier"])),
    }


@pytest.mark.parametrize("task", ["translation", "language_model", "masked_language_model", "image_classifier"])
def test_another_size_is_refused(small_folders: dict[str, Path], task: str) -> None:
    job = jobs(small_folders)[task]
    check(job, {})
    with pytest.raises(UserError, match=r"has model.width 24, and its weights do not fit 48: leave model\.width out"):
        check(job, {"width": 48})
    if task != "image_classifier":
        with pytest.raises(UserError, match=f"{small_folders[task]} has model.vocabulary_size 263, .* do not fit 300"):
            check(job, {"vocabulary_size": 300})


def test_what_weights_are_fitted_to_is_allowed(small_folders: dict[str, Path]) -> None:
    every = jobs(small_folders)
    check(every["translation"], {"max_length": 17, "encoder": {"dropout": 0.2}})
    check(every["language_model"], {"max_length": 17, "stack": {"dropout": 0.3}})
    check(every["image_classifier"], {"image_size": [16, 16]})
    with pytest.raises(
        UserError, match=r"has model\.stack\.feed_forward\.inner_width another, and its weights do not fit 31"
    ):
        check(every["language_model"], {"stack": {"feed_forward": {"inner_width": 31}}})
