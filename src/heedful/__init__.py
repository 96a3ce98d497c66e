"""heedful trains, runs, looks into and serves Transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from heedful.errors import UserError
    from heedful.jobs.image_classifier import ImageData
    from heedful.jobs.labels import ClassifierData, TaggerData
    from heedful.jobs.language_model import TextData
    from heedful.jobs.masked_language_model import MaskedTextData
    from heedful.jobs.translation import TranslationData
    from heedful.pipelines import (
        Classifier,
        Encoder,
        GenerationOptions,
        ImageClassifier,
        LanguageModel,
        MaskedLanguageModel,
        Tagger,
        Translation,
        Translator,
        load,
    )
    from heedful.training.run import train
    from heedful.training.run_config import RunConfig

__all__ = [
    "Classifier",
    "ClassifierData",
    "Encoder",
    "GenerationOptions",
    "ImageClassifier",
    "ImageData",
    "LanguageModel",
    "MaskedLanguageModel",
    "MaskedTextData",
    "RunConfig",
    "Tagger",
    "TaggerData",
    "TextData",
    "Translation",
    "TranslationData",
    "Translator",
    "UserError",
    "__version__",
    "load",
    "train",
]

_PLACES = {
    "Classifier": "heedful.pipelines",
    "ClassifierData": "heedful.jobs.labels",
    "Encoder": "heedful.pipelines",
    "GenerationOptions": "heedful.pipelines",
    "ImageClassifier": "heedful.pipelines",
    "ImageData": "heedful.jobs.image_classifier",
    "LanguageModel": "heedful.pipelines",
    "MaskedLanguageModel": "heedful.pipelines",
    "MaskedTextData": "heedful.jobs.masked_language_model",
    "RunConfig": "heedful.training.run_config",
    "Tagger": "heedful.pipelines",
    "TaggerData": "heedful.jobs.labels",
    "TextData": "heedful.jobs.language_model",
    "Translation": "heedful.pipelines",
    "TranslationData": "heedful.jobs.translation",
    "Translator": "heedful.pipelines",
    "UserError": "heedful.errors",
    "load": "heedful.pipelines",
    "train": "heedful.training.run",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: `heedful --help` must not wait for torch.
    if name not in _PLACES:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_PLACES[name]), name)
