# The public names: this list is the only one. `__init__.py` reads it, and imports a name when it is first used.
from heedful import layers as layers
from heedful import models as models
from heedful.decoding.options import DecodingOptions as DecodingOptions
from heedful.decoding.options import SamplingOptions as SamplingOptions
from heedful.decoding.search import beam as beam
from heedful.decoding.search import greedy as greedy
from heedful.errors import UserError as UserError
from heedful.presets.build import build as build
from heedful.presets.build import preset as preset
from heedful.presets.preset import Preset as Preset
from heedful.tasks.encoding.pipeline import Encoder as Encoder
from heedful.tasks.image_classification.job import ImageData as ImageData
from heedful.tasks.image_classification.pipeline import ImageClassifier as ImageClassifier
from heedful.tasks.labelling.classifier import Classifier as Classifier
from heedful.tasks.labelling.job import ClassifierData as ClassifierData
from heedful.tasks.labelling.job import TaggerData as TaggerData
from heedful.tasks.labelling.tagger import Tagger as Tagger
from heedful.tasks.language_modeling.generation import GenerationOptions as GenerationOptions
from heedful.tasks.language_modeling.job import TextData as TextData
from heedful.tasks.language_modeling.pipeline import LanguageModel as LanguageModel
from heedful.tasks.loading import load as load
from heedful.tasks.masked_modeling.job import MaskedTextData as MaskedTextData
from heedful.tasks.masked_modeling.pipeline import MaskedLanguageModel as MaskedLanguageModel
from heedful.tasks.saving import save as save
from heedful.tasks.translation.answers import Translation as Translation
from heedful.tasks.translation.job import TranslationData as TranslationData
from heedful.tasks.translation.pipeline import Translator as Translator
from heedful.text.tokenizer import Tokenizer as Tokenizer
from heedful.training.run import train as train
from heedful.training.run_config import RunConfig as RunConfig

__version__: str
