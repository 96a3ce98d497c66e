"""What users hold: a loaded model with the verbs of its task."""

from heedful.pipelines.image_classifier import Classification, ImageClassifier
from heedful.pipelines.language_model import LanguageModel
from heedful.pipelines.loading import load
from heedful.pipelines.text_generation import GenerationOptions
from heedful.pipelines.translator import Translation, Translator

__all__ = [
    "Classification",
    "GenerationOptions",
    "ImageClassifier",
    "LanguageModel",
    "Translation",
    "Translator",
    "load",
]
