"""A folder with a run of another task is refused by the names of the two."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heedful.errors import UserError
from heedful.tasks.image_classification.job import ImageData
from heedful.tasks.labelling.job import ClassifierData, TaggerData
from heedful.tasks.language_modeling.job import TextData
from heedful.tasks.masked_modeling.job import MaskedTextData
from heedful.tasks.translation.job import TranslationData
from heedful.training.other_task import refuse_other_task
from heedful.training.run import train
from heedful.training.run_config import RunConfig

MODELS = {
    "a classifier": ("encoder_only", SimpleNamespace(head="classes"), ClassifierData()),
    "a tagger": ("encoder_only", SimpleNamespace(head="tags"), TaggerData()),
    "a masked language model": ("encoder_only", SimpleNamespace(head="masked"), MaskedTextData()),
    "a language model": ("xlnet", SimpleNamespace(), TextData()),
    "a translation model": ("recurrent", SimpleNamespace(), TranslationData()),
    "an image classifier": ("vision", SimpleNamespace(), ImageData()),
}


@pytest.mark.parametrize("held", MODELS)
@pytest.mark.parametrize("asked", MODELS)
def test_both_tasks_are_named(held: str, asked: str) -> None:
    family, model, _ = MODELS[held]
    job: Any = MODELS[asked][2]
    if held == asked:
        refuse_other_task(family, model, job, Path("x"))
        return
    with pytest.raises(UserError, match=f"^x holds {held}, and this is {asked}: choose another --out$"):
        refuse_other_task(family, model, job, Path("x"))


def test_a_run_says_so_before_anything_else(tmp_path: Path) -> None:
    labelled, pairs = tmp_path / "labelled.tsv", tmp_path / "pairs.tsv"
    labelled.write_text("".join(f"{'ab'[n % 2]}\tthe dog {n}\n" for n in range(40)), encoding="utf-8")
    pairs.write_text("".join(f"the dog {n}\tder Hund {n}\n" for n in range(40)), encoding="utf-8")
    settings = {
        "model": {"vocabulary_size": 270, "width": 16, "stack": {"num_layers": 1, "attention": {"num_heads": 2}}},
        "training": {"limit": {"steps": 1}, "machine": {"device": "cpu", "workers": 1}},
    }
    out = str(tmp_path / "model")
    train(RunConfig(out, ClassifierData(data=(str(labelled),)), settings=settings))
    with pytest.raises(UserError, match="model holds a classifier, and this is a translation model: choose another"):
        train(RunConfig(out, TranslationData(tsv=(str(pairs),))))
