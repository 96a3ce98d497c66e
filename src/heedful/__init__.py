"""heedful trains, runs, looks into and serves Transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from heedful.decoding.options import DecodingOptions, SamplingOptions
    from heedful.errors import UserError
    from heedful.tasks.encoding.pipeline import Encoder
    from heedful.tasks.image_classification.job import ImageData
    from heedful.tasks.image_classification.pipeline import ImageClassifier
    from heedful.tasks.labelling.classifier import Classifier
    from heedful.tasks.labelling.job import ClassifierData, TaggerData
    from heedful.tasks.labelling.tagger import Tagger
    from heedful.tasks.language_modeling.generation import GenerationOptions
    from heedful.tasks.language_modeling.job import TextData
    from heedful.tasks.language_modeling.pipeline import LanguageModel
    from heedful.tasks.loading import load
    from heedful.tasks.masked_modeling.job import MaskedTextData
    from heedful.tasks.masked_modeling.pipeline import MaskedLanguageModel
    from heedful.tasks.translation.answers import Translation
    from heedful.tasks.translation.job import TranslationData
    from heedful.tasks.translation.pipeline import Translator
    from heedful.training.run import train
    from heedful.training.run_config import RunConfig

__all__ = [
    "Classifier",
    "ClassifierData",
    "DecodingOptions",
    "Encoder",
    "GenerationOptions",
    "ImageClassifier",
    "ImageData",
    "LanguageModel",
    "MaskedLanguageModel",
    "MaskedTextData",
    "RunConfig",
    "SamplingOptions",
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
    "Classifier": "heedful.tasks.labelling.classifier",
    "ClassifierData": "heedful.tasks.labelling.job",
    "DecodingOptions": "heedful.decoding.options",
    "Encoder": "heedful.tasks.encoding.pipeline",
    "GenerationOptions": "heedful.tasks.language_modeling.generation",
    "ImageClassifier": "heedful.tasks.image_classification.pipeline",
    "ImageData": "heedful.tasks.image_classification.job",
    "LanguageModel": "heedful.tasks.language_modeling.pipeline",
    "MaskedLanguageModel": "heedful.tasks.masked_modeling.pipeline",
    "MaskedTextData": "heedful.tasks.masked_modeling.job",
    "RunConfig": "heedful.training.run_config",
    "SamplingOptions": "heedful.decoding.options",
    "Tagger": "heedful.tasks.labelling.tagger",
    "TaggerData": "heedful.tasks.labelling.job",
    "TextData": "heedful.tasks.language_modeling.job",
    "Translation": "heedful.tasks.translation.answers",
    "TranslationData": "heedful.tasks.translation.job",
    "Translator": "heedful.tasks.translation.pipeline",
    "UserError": "heedful.errors",
    "load": "heedful.tasks.loading",
    "train": "heedful.training.run",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    # Imported when first used: `heedful --help` must not wait for torch.
    if name not in _PLACES:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_PLACES[name]), name)
