"""What users hold: a loaded model with the verbs of its task."""

from heedful.pipelines.classification import Classification
from heedful.pipelines.classifier import Classifier
from heedful.pipelines.encoder import Encoder
from heedful.pipelines.image_classifier import ImageClassifier
from heedful.pipelines.language_model import LanguageModel
from heedful.pipelines.loading import load
from heedful.pipelines.masked_language_model import Filling, MaskedLanguageModel
from heedful.pipelines.tagger import TaggedWord, Tagger
from heedful.pipelines.text_generation import GenerationOptions
from heedful.pipelines.translator import Translation, Translator

__all__ = [
    "Classification",
    "Classifier",
    "Encoder",
    "Filling",
    "GenerationOptions",
    "ImageClassifier",
    "LanguageModel",
    "MaskedLanguageModel",
    "TaggedWord",
    "Tagger",
    "Translation",
    "Translator",
    "load",
]
