"""The engine's C interface (core/interface.h) in ctypes."""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Sequence
from ctypes import (
    POINTER,
    byref,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import cache
from typing import Any, TypeVar

from heedful.config import shown
from heedful.core.library import library
from heedful.errors import UserError, not_numbers

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "swiglu")
POSITIONS = ("none", "sinusoidal", "sinusoid_halves", "learned", "rotary", "alibi", "relative_buckets")
TYPES = {"F32": (0, 4), "F16": (1, 2), "BF16": (2, 2), "F64": (3, 8)}


def _integers(names: str) -> list[tuple[str, Any]]:
    return [(name, c_int32) for name in names.split()]


class StackSettings(ctypes.Structure):
    """The front and the blocks of a stack; without layers there is no such stack."""

    _fields_ = (
        *_integers("layers heads key_value_heads key_width value_width"),
        *_integers("inner_width activation pre_norm rms_norm window"),
        *_integers("attention_bias feed_forward_bias additive"),
        *_integers("positions position_rows segments embedding_norm"),
        *((name, c_float) for name in ("norm_epsilon", "embedding_norm_epsilon", "embedding_scale", "score_scale")),
    )


class ModelSettings(ctypes.Structure):
    """A whole model."""

    _fields_ = (
        *_integers("int8 vocabulary width max_length"),
        *_integers("shared_embeddings output_bias outputs"),
        *_integers("pooler transform convolution"),
        *_integers("pad start end mask"),
        ("encoder", StackSettings),
        ("decoder", StackSettings),
    )


class SearchSettings(ctypes.Structure):
    """How tokens are chosen, and with how many threads."""

    _fields_ = (
        *((name, c_double) for name in ("length_penalty", "temperature", "top_p", "repetition_penalty")),
        *_integers("beam nbest min_length sampling top_k keep_logits no_repeat_ngram threads sentences"),
    )


class CoreRequest(ctypes.Structure):
    """One sentence to decode."""

    _fields_ = (
        ("index", c_int64),
        ("source", POINTER(c_int32)),
        ("prefix", POINTER(c_int32)),
        ("shortlist", POINTER(c_int32)),
        *_integers("source_length prefix_length shortlist_length first longest"),
        ("seed", c_uint64),
        ("number", c_uint64),
    )


Settings = TypeVar("Settings", StackSettings, ModelSettings, SearchSettings)


def filled(kind: type[Settings], **values: Any) -> Settings:
    """A structure with these values; ctypes would silently truncate those that do not fit."""
    for name, value in values.items():
        if isinstance(value, int) and not -(2**31) <= value < 2**31:
            raise UserError(f"{name} is {shown(value)}, but must be below 2**31")
    return kind(**values)


def check_ids(ids: Sequence[int]) -> None:
    """Raise a UserError for a token that no vocabulary has, which C would truncate; the engine checks the rest."""
    if ids and (min(ids) < 0 or max(ids) >= 2**31):
        wrong = next(each for each in ids if not 0 <= each < 2**31)
        raise UserError(f"token {shown(wrong)} is not in the vocabulary")


_INTS, _FLOATS = POINTER(c_int32), POINTER(c_float)
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "heedful_use_instruction_set": (c_int, (c_char_p,)),
    "heedful_error": (c_char_p, ()),
    "heedful_checksum": (c_int, (c_void_p, c_uint64, POINTER(c_uint32))),
    "heedful_checksum_joined": (c_uint32, (c_uint32, c_uint32, c_uint64)),
    "heedful_model_new": (c_void_p, (POINTER(ModelSettings),)),
    "heedful_model_put": (
        c_int,
        (c_void_p, c_char_p, c_int, POINTER(c_int64), c_int, c_int64, c_void_p, c_uint64),
    ),
    "heedful_model_shortlist": (c_int, (c_void_p, _INTS, c_int)),
    "heedful_model_finish": (c_int, (c_void_p,)),
    "heedful_model_free": (None, (c_void_p,)),
    "heedful_decoder_new": (c_void_p, (c_void_p, POINTER(SearchSettings))),
    "heedful_decoder_free": (None, (c_void_p,)),
    "heedful_decoder_add": (c_int, (c_void_p, POINTER(CoreRequest), c_int)),
    "heedful_decoder_cancel": (c_int, (c_void_p, c_int64)),
    "heedful_decoder_step": (c_int, (c_void_p,)),
    "heedful_decoder_run": (c_int, (c_void_p, c_int)),
    "heedful_decoder_waiting": (c_int, (c_void_p,)),
    "heedful_decoder_running": (c_int, (c_void_p,)),
    "heedful_decoder_steps": (c_int64, (c_void_p,)),
    "heedful_decoder_done": (c_int, (c_void_p, POINTER(c_int64), _INTS)),
    "heedful_decoder_take": (None, (c_void_p, _INTS, POINTER(c_double), _INTS, _FLOATS)),
    "heedful_decoder_progress": (c_int, (c_void_p, c_int64, _INTS, c_int, _INTS, _FLOATS)),
    "heedful_decoder_likeliest": (c_int, (c_void_p, c_int64, c_int, _INTS, _FLOATS)),
    "heedful_score": (c_int, (c_void_p, c_int, c_int, _INTS, _INTS, _INTS, _INTS, _FLOATS, c_void_p)),
    "heedful_encode": (c_int, (c_void_p, c_int, c_int, _INTS, c_void_p, _INTS, c_int, c_int, c_void_p)),
}


@cache
def engine() -> ctypes.CDLL:
    """The library, with the types of all its functions."""
    loaded = library()
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def add_to_checksum(content: memoryview, crc: int) -> int:
    """Continue a CRC-32 over more bytes, as zlib.crc32 does, with the processor's own instructions if it has them."""
    total = c_uint32(crc)
    if engine().heedful_checksum((c_char * len(content)).from_buffer(content), len(content), byref(total)):
        return zlib.crc32(content, crc)
    return total.value


def joined_checksum(first: int, second: int, size: int) -> int:
    """The CRC-32 of two parts together, from that of each; `size` is the second part's in bytes."""
    joined: int = engine().heedful_checksum_joined(first, second, size)
    return joined


def last_error() -> str:
    """What went wrong in the last call that failed."""
    message: bytes = engine().heedful_error()
    return message.decode("utf-8", "replace")


def check(failed: int) -> None:
    """Raise a UserError if a call has failed."""
    if failed and "not numbers" in last_error():
        raise not_numbers("scores")
    if failed:
        raise UserError(last_error())
