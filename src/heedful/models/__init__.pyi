from heedful.models.decoder_only import DecoderOnly as DecoderOnly
from heedful.models.encoder_decoder import EncoderDecoder as EncoderDecoder
from heedful.models.encoder_only import EncoderOnly as EncoderOnly
from heedful.models.recurrent import Recurrent as Recurrent
from heedful.models.vision import Vision as VisionTransformer  # noqa: F401
from heedful.models.xlnet import XLNet as XLNet
from heedful.settings.decoder_only import DecoderOnlyConfig as DecoderOnlyConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig as EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig as EncoderOnlyConfig
from heedful.settings.recurrent import RecurrentConfig as RecurrentConfig
from heedful.settings.vision import VisionConfig as VisionConfig
from heedful.settings.xlnet import XLNetConfig as XLNetConfig
