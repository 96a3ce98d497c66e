"""heedful trains, runs, looks into and serves Transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from heedful.decoding.options import DecodingOptions, SamplingOptions
    from heedful.errors import UserError
    from heedful.jobs.image_classifier import ImageData
    from heedful.jobs.labels import ClassifierData, TaggerData
    from heedful.jobs.language_model import TextData
    from heedful.jobs.masked_language_model import MaskedTextData
    from heedful.jobs.translation import TranslationData
    from heedful.pipelines.classifier import Classifier
    from heedful.pipelines.encoder import Encoder
    from heedful.pipelines.image_classifier import ImageClassifier
    from heedful.pipelines.language_model import LanguageModel
    from heedful.pipelines.loading import load
    from heedful.pipelines.masked_language_model import MaskedLanguageModel
    from heedful.pipelines.tagger import Tagger
    from heedful.pipelines.text_generation import GenerationOptions
    from heedful.pipelines.translation import Translation
    from heedful.pipelines.translator import Translator
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
    "Classifier": "heedful.pipelines.classifier",
    "ClassifierData": "heedful.jobs.labels",
    "DecodingOptions": "heedful.decoding.options",
    "Encoder": "heedful.pipelines.encoder",
    "GenerationOptions": "heedful.pipelines.text_generation",
    "ImageClassifier": "heedful.pipelines.image_classifier",
    "ImageData": "heedful.jobs.image_classifier",
    "LanguageModel": "heedful.pipelines.language_model",
    "MaskedLanguageModel": "heedful.pipelines.masked_language_model",
    "MaskedTextData": "heedful.jobs.masked_language_model",
    "RunConfig": "heedful.training.run_config",
    "SamplingOptions": "heedful.decoding.options",
    "Tagger": "heedful.pipelines.tagger",
    "TaggerData": "heedful.jobs.labels",
    "TextData": "heedful.jobs.language_model",
    "Translation": "heedful.pipelines.translation",
    "TranslationData": "heedful.jobs.translation",
    "Translator": "heedful.pipelines.translator",
    "UserError": "heedful.errors",
    "load": "heedful.pipelines.loading",
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
