"""A model that the engine computes with, with the same decoding interface as the torch models, but without torch."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Sequence
from ctypes import c_char, c_int64, c_void_p
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NoReturn

from heedful.config import shown
from heedful.core.interface import TYPES, check, check_ids, engine, last_error
from heedful.core.settings import FAMILIES, LONGEST_TEXT, engine_name, model_settings, stored_name
from heedful.core.weight_shards import open_weights
from heedful.core.weights import Weights
from heedful.errors import UserError
from heedful.machine.cores import available_cores
from heedful.settings.position_scheme import table_length
from heedful.settings.positions import config_of, name_of, traits_of
from heedful.settings.relative_buckets import RelativeBucketConfig
from heedful.settings.sizes import check_sizes
from heedful.text.special_tokens import SpecialTokens

# Translating a line should not wait for numpy.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from heedful.core.scheduler import CoreScheduler
    from heedful.decoding.options import DecodingOptions
    from heedful.text.shortlist import Shortlist

# A file of at least this many bytes is read and packed by several threads, at most this many.
LARGE_FILE, MOST_LOADING = 1 << 24, 8


class Cpu:
    """Where the engine computes, named as torch's devices are."""

    type = "cpu"


class CoreModel:
    """The weights of a model folder in the engine's memory, and what decoding needs from a model."""

    def __init__(
        self,
        folder: Path,
        family: str,
        config: Any,
        *,
        int8: bool,
        max_length: int | None = None,
        shortlist: Shortlist | None = None,
    ) -> None:
        self.folder, self.family, self.config, self.int8 = folder, family, config, int8
        self.asked_length = max_length
        # Code that looks inside a model uses torch, and keeps the network that it loaded here.
        self.torch_network: Any = None
        self.device, self.shortlist = Cpu(), shortlist
        self.max_length: int = max_length or config.max_length
        self.threads = available_cores()
        with open_weights(folder) as file:
            self.version, self.metadata = file.version, file.metadata
            try:
                self._load(file)
            except UserError as error:
                file.check()  # damage first: it may be the cause of the other error
                raise UserError(f"{file.path} and config.json: {error}") from None
            file.check_pieces()

    def __reduce__(self) -> NoReturn:
        raise UserError(
            "a model in the engine's memory cannot be copied or pickled: call heedful.load again where it is needed"
        )

    def _load(self, file: Weights) -> None:
        names = self._names(file)
        self.num_parameters = sum(math.prod(each.shape) for each in file.tensors.values())
        check_sizes(self.config, file.shapes)
        if self.max_length > LONGEST_TEXT:  # before tables for so many positions are made
            raise UserError(f"max_length is {shown(self.max_length)}, but must be at most {LONGEST_TEXT}")
        self._tables = self._position_tables(file, names)
        # A table has a row per position, biases a column per distance.
        rows = max((len(each.T if name.endswith("biases") else each) for name, each in self._tables.items()), default=0)
        settings = model_settings(self.family, self.config, self.max_length, rows, int8=self.int8)
        self.handle = c_void_p(engine().heedful_model_new(settings))
        if not self.handle:
            raise UserError(last_error())
        self._finalizer = weakref.finalize(self, engine().heedful_model_free, self.handle)
        places = {stored: [name] for name, stored in names.items() if ".positions." not in name}
        tied = next((each for each in ("decoder.embedding", "encoder.embedding") if each in names), None)
        if self._ties_output and tied is not None:  # otherwise the engine reports it as missing
            places[names[tied]].append("output.weight")
        self._put_all(file, places)
        for name, table in self._tables.items():
            self._put_array(name, table)
        del self._tables
        if self.shortlist:
            frequent = self.shortlist.frequent_F.tolist()
            check(engine().heedful_model_shortlist(self.handle, as_ints(frequent), len(frequent)))
        if engine().heedful_model_finish(self.handle):
            name, missing, _ = last_error().partition(" is missing")
            raise self._missing(name) if missing else UserError(last_error())

    def _missing(self, name: str) -> UserError:
        """The error for a tensor that the engine needs and the file does not have."""
        return UserError(f"{stored_name(self.family, name)} is missing")

    @property
    def _ties_output(self) -> bool:
        """Whether the output layer has the weights of an embedding."""
        if self.family == "encoder_only":
            return bool(self.config.head == "masked")
        return bool(self.config.tied_output)

    def _names(self, file: Weights) -> dict[str, str]:
        """The names in the file by those in the engine; a tensor that is not part of the model is a UserError."""
        names: dict[str, str] = {}
        positions = {"learned": "table", "relative_buckets": "biases"}.get(name_of(self.config.positions))
        for stored in file.tensors:
            name = engine_name(self.family, stored)
            strange = ".positions." in name and not name.endswith(f".positions.{positions}")
            if name in names or strange or (name == "output.weight" and self._ties_output):
                raise UserError(f"{stored[:80]} is not part of the model")
            names[name] = stored
        return names

    def _put_all(self, file: Weights, places: dict[str, list[str]]) -> None:
        """Hand tensors over to the engine, which packs them without Python's lock; large files use several threads."""
        waiting = sorted(enumerate(places), key=lambda each: file.tensors[each[1]].size)
        failures: dict[int, Exception] = {}

        def put_waiting(own: Weights) -> None:
            while waiting:
                try:
                    number, stored = waiting.pop()
                except IndexError:  # another thread took the last one
                    return
                try:
                    self._put(places[stored], own, stored)
                except Exception as error:
                    failures[number] = error

        def put_in_thread(own: Weights) -> None:
            with own:
                put_waiting(own)

        large = sum(each.size for each in file.tensors.values()) >= LARGE_FILE
        opened = [file.opened_again() for _ in range(min(self.threads, MOST_LOADING) - 1 if large else 0)]
        threads = [Thread(target=put_in_thread, args=[each]) for each in opened if each is not None]
        for thread in threads:
            thread.start()
        put_waiting(file)
        for thread in threads:
            thread.join()
        if failures:  # the same one however the threads were scheduled
            raise failures[min(failures)]

    def _put(self, names: list[str], file: Weights, stored: str) -> None:
        """Hand one tensor over, under each of these names in the engine."""
        tensor = file.tensors[stored]
        described = TYPES[tensor.kind][0], (c_int64 * len(tensor.shape))(*tensor.shape), len(tensor.shape)
        for first, piece in file.pieces(stored):
            data = (c_char * len(piece)).from_buffer(piece)
            for name in names:
                if engine().heedful_model_put(self.handle, name.encode(), *described, first, data, len(piece)):
                    # The engine shows this much of a name.
                    raise UserError(last_error().replace(name[:80], stored[:80], 1))

    def _put_array(self, name: str, array: NDArray[np.float32]) -> None:
        array = array.astype("float32", order="C")
        described = 0, (c_int64 * array.ndim)(*array.shape), array.ndim
        data = array.ctypes.data, array.nbytes
        check(engine().heedful_model_put(self.handle, name.encode(), *described, 0, *data))

    def _position_tables(self, file: Weights, names: dict[str, str]) -> dict[str, NDArray[np.float32]]:
        """The position tables of each stack for the engine, by the engine's names."""
        config, scheme = self.config, name_of(self.config.positions)
        if scheme in ("none", "sinusoidal", "sinusoid_halves"):
            return {}
        from heedful.core.position_tables import alibi_slopes, biases_by_distance, interpolated, rotary_tables

        stacks = [each for each in ("encoder", "decoder") if self.family in ("encoder_decoder", f"{each}_only")]
        tables: dict[str, NDArray[np.float32]] = {}
        for name in stacks:
            stack = getattr(config, name) if self.family == "encoder_decoder" else config.stack
            where = f"{name}.positions."
            heads = stack.attention.num_heads
            if scheme == "learned":
                shape = (self._rows(config.max_length), config.width)
                stored = self._stored(file, names, where + "table", shape)
                tables[where + "table"] = interpolated(stored, self._rows(self.max_length))
            elif scheme == "rotary":
                trained, rows = self._rows(config.max_length), self._rows(self.max_length)
                width = stack.attention.width_per_head(config.width)
                found = rotary_tables(config_of(config.positions), width, trained, rows)
                tables |= {where + key: table for key, table in found.items()}
            elif scheme == "alibi":
                tables[where + "slopes"] = alibi_slopes(heads)
            elif scheme == "relative_buckets":
                positions = config_of(config.positions)
                assert isinstance(positions, RelativeBucketConfig)
                buckets = self._stored(file, names, where + "biases", (positions.num_buckets, heads))
                biases = biases_by_distance(buckets, positions.max_distance, causal=name == "decoder")
                tables[where + "biases"] = biases
        return tables

    def _stored(self, file: Weights, names: dict[str, str], name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        if name not in names:
            raise self._missing(name)
        if file.tensors[names[name]].shape != shape:
            raise UserError(f"{names[name]} has another shape than the settings say")
        numbers = file.floats(names[name])
        if not math.isfinite(float(abs(numbers).max(initial=0.0))):
            raise UserError(
                f"{names[name]} holds a number that is infinite or NaN: the weights are damaged, or training diverged"
            )
        return numbers

    def _rows(self, length: int) -> int:
        """The rows of a table of positions, in a model for texts of that length."""
        if self.family != "encoder_decoder":
            return length
        return table_length(length + 1)  # one more for the end token

    @property
    def special_tokens(self) -> SpecialTokens:
        """Where the vocabulary has its special tokens."""
        special: SpecialTokens = self.config.special_tokens
        return special

    @property
    def bounded(self) -> bool:
        """Whether positions set a limit to the length of texts."""
        return not traits_of(self.config.positions).extends

    @property
    def continues_text(self) -> bool:
        """Whether a target continues its source, rather than translating it."""
        return bool(self.family == "decoder_only")

    def new_scheduler(self, options: DecodingOptions, max_sentences: int) -> CoreScheduler:
        """A scheduler that decodes with this model."""
        from heedful.core.scheduler import CoreScheduler

        return CoreScheduler(self, options, max_sentences)

    def frame(self, source: Sequence[int]) -> tuple[list[int], int]:
        """What is prefilled for a source, and the token that the first step reads."""
        if self.family == "encoder_decoder":
            return [*source, self.special_tokens.end], self.special_tokens.start
        whole = list(source) or [self.special_tokens.before_text]
        return whole[:-1], whole[-1]

    def own_tokens(self, prefilled: Sequence[int]) -> list[int]:
        """The tokens of the shortlist, besides the frequent ones, that the target of a source may have."""
        if self.shortlist is None:
            return []
        import numpy as np

        # The engine refuses requests with tokens that the vocabulary does not have.
        known = [token for token in prefilled if 0 <= token < self.config.vocabulary_size]
        return self.shortlist.own_tokens(np.array(known, np.int64)).tolist()

    def longest_target(self, source_length: int) -> int | None:
        """The most target tokens that the model can take, if its positions set a limit."""
        if not self.bounded:
            return None
        if self.family == "encoder_decoder":
            return self.max_length
        return max(0, self.max_length - source_length - 1)

    def decoding_bytes(self, rows: int, length: int) -> int:
        """Bytes of decoding state that a sentence takes, with this many rows, and this many tokens on either side."""
        stack = self.config.decoder if self.family == "encoder_decoder" else self.config.stack
        attention = stack.attention
        key_width = attention.width_per_head(self.config.width)
        heads = attention.num_key_value_heads or attention.num_heads
        position = 4 * stack.num_layers * heads * (key_width + (attention.value_width or key_width))
        return int(position * length * (rows + 1))


def runs_family(family: str) -> bool:
    """Whether the engine computes with models of a family."""
    return family in FAMILIES


def as_ints(values: Sequence[int]) -> Any:
    """Token ids as a C array."""
    check_ids(values)
    return (ctypes.c_int32 * len(values))(*values)
