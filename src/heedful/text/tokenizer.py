"""Text to token ids and back: byte-level subwords, which lose no character, or single characters."""

import codecs
import json
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from heedful.errors import UserError
from heedful.files import write_file
from heedful.text.special_tokens import END, PAD, START, SpecialTokens
from heedful.weights_seal import checksum_of

# None of the brackets is in the alphabet of byte-level subwords, so no text can become one of these.
SPECIAL_TOKENS = ("⟨pad⟩", "⟨start⟩", "⟨end⟩")
MASK_TOKEN, UNKNOWN_TOKEN = "⟨mask⟩", "⟨unknown⟩"

SMALLEST_VOCABULARY = 256 + len(SPECIAL_TOKENS)

# A word with the space before it, one digit, a run of other signs, or white space. Marks belong to their
# letters: without that, words of many scripts (such as Devanagari) would be cut at each vowel sign.
_WORD_PATTERN = r" ?[\p{L}\p{M}]+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"
# Learning subwords takes time that grows with the square of a word's length. Words of natural text are much shorter.
LONGEST_WORD = 1000
_LONG_RUN = re.compile(rf"(?<!\S)\S{{{LONGEST_WORD + 1},}}|(?<!\s)\s{{{LONGEST_WORD + 1},}}")
# What `encode_after` puts before a text, and drops again: signs that hardly ever share a subword with what follows.
_CARRIERS = (".", "a")
_SPACE = "Ġ"  # how byte-level vocabularies spell a space


def _byte_of_sign() -> dict[str, int]:
    """The bytes by the signs that byte-level vocabularies spell them with: themselves, or what is free from 256 up."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


_BYTE_OF_SIGN = _byte_of_sign()
_BYTES_AS_LABELS = "heedful.bytes_as_labels"


def _label_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(f"<{byte:02X}>" for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_BYTES_AS_LABELS, _label_bytes)


def choose_vocabulary_size(num_characters: int) -> int:
    """A vocabulary size for a corpus of this many characters, both languages counted together."""
    size = 5 * math.sqrt(num_characters / 5)
    return 8 * round(min(max(size, 400), 32_000) / 8)


class Tokenizer:
    """A vocabulary; with subwords, decode(encode(text)) is the text in Unicode form NFC."""

    def __init__(self, engine: tokenizers.Tokenizer, special_tokens: SpecialTokens) -> None:
        self._engine = engine
        engine.encode_special_tokens = True  # which means: text that looks like one stays text
        vocabulary: dict[str, int] = engine.get_vocab()
        self.vocabulary_size = len(vocabulary)
        self.largest_id = max(vocabulary.values(), default=-1)
        self.special_tokens = special_tokens
        # Not by writing out the whole: if one token has a huge id, that takes all memory.
        parts = (engine.normalizer, engine.pre_tokenizer, engine.post_processor, engine.decoder)
        self._byte_level = any(b"ByteLevel" in part.__getstate__() for part in parts if part is not None)
        # A vocabulary of characters is looked up directly, which is fifty times as fast.
        direct = special_tokens.unknown is not None and _is_of_characters(engine)
        self._characters: dict[str, int] = vocabulary if direct else {}
        # What tokens stand for, as far as it was asked for: every translation gives the text of each of its tokens.
        self._texts: dict[int, str] = {}

    @property
    def is_of_characters(self) -> bool:
        """Whether each token is one character."""
        return bool(self._characters)

    @property
    def is_word_by_word(self) -> bool:
        """Whether `train` made it for lines: a text's tokens are those of its words, each with a space before it."""
        content = json.loads(self._engine.to_str())
        splits = (content["pre_tokenizer"] or {}).get("pretokenizers", [{}])
        if content["added_tokens"] or splits[0].get("pattern") != {"Regex": _WORD_PATTERN}:
            return False
        return "Prepend" in json.dumps(content["normalizer"])

    @classmethod
    def train(
        cls, texts: Iterable[str], vocabulary_size: int, *, mask: bool = False, whole_texts: bool = False
    ) -> "Tokenizer":
        """Learn at most vocabulary_size subwords by byte-pair encoding; the order of texts has no effect.

        A text is a line, whose first word is the same subword as if it stood after a space, unless they are
        `whole_texts`. With `mask` there is a token that stands for a hidden one.
        """
        special = [*SPECIAL_TOKENS, MASK_TOKEN] if mask else list(SPECIAL_TOKENS)
        if vocabulary_size < SMALLEST_VOCABULARY:
            raise UserError(
                f"a vocabulary of {vocabulary_size} is too small: the bytes and the special tokens alone "
                f"take {SMALLEST_VOCABULARY}"
            )
        engine = tokenizers.Tokenizer(models.BPE())
        engine.normalizer = normalizers.NFC()
        engine.decoder = decoders.ByteLevel()
        if not whole_texts:
            engine.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Prepend(" ")])
            engine.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
        engine.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(tokenizers.Regex(_WORD_PATTERN), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary_size,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        engine.train_from_iterator((piece for text in texts for piece in _with_bounded_words(text)), trainer)
        # Training registers the special tokens to be looked for in texts; here they must never be found.
        content = json.loads(engine.to_str())
        content["added_tokens"] = []
        return cls.from_json(json.dumps(content, ensure_ascii=False))

    @classmethod
    def of_characters(cls, texts: Iterable[str]) -> "Tokenizer":
        """One token for each character of some texts; any other character becomes the unknown token."""
        found = sorted({character for text in texts for character in text})
        names = [*SPECIAL_TOKENS, UNKNOWN_TOKEN, *found]
        vocabulary = {name: number for number, name in enumerate(names)}
        engine = tokenizers.Tokenizer(models.WordLevel(vocabulary, UNKNOWN_TOKEN))
        engine.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
        engine.decoder = decoders.Fuse()
        return cls.from_json(engine.to_str())

    @classmethod
    def from_json(cls, content: str, special_tokens: SpecialTokens | None = None) -> "Tokenizer":
        """The tokenizer that to_json wrote, or a foreign one, for which `special_tokens` must be given."""
        with errors_of_library("this is not a tokenizer"):
            engine = tokenizers.Tokenizer.from_str(content)
        for name in ("padding", "truncation"):
            if getattr(engine, name) is not None:
                raise UserError(f"its {name} must be null: heedful gives a model all tokens of a text, and no others")
        if special_tokens is None:
            if tuple(engine.id_to_token(i) for i in (PAD, START, END)) != SPECIAL_TOKENS:
                raise UserError(f"this tokenizer was not made by heedful: its first tokens are not {SPECIAL_TOKENS}")
            mask, unknown = (engine.token_to_id(name) for name in (MASK_TOKEN, UNKNOWN_TOKEN))
            special_tokens = SpecialTokens(mask=mask, unknown=unknown)
        return cls(engine, special_tokens)

    @classmethod
    def load(
        cls, path: str | Path, special_tokens: SpecialTokens | None = None, checksum: str | None = None
    ) -> "Tokenizer":
        """Read a tokenizer.json, which must have that checksum if there is one."""
        try:
            content = Path(path).read_bytes()
            if checksum is None or checksum_of(content) == checksum:
                return cls.from_json(content.decode("utf-8"), special_tokens)
        except (OSError, ValueError) as error:
            raise UserError(f"{path} cannot be read: {error}") from error
        raise UserError(
            f"{path} is not the file that the model was written with: it is damaged or was replaced; put back the "
            "model's own"
        )

    def to_json(self) -> str:
        """Everything about this tokenizer as one text."""
        return self._engine.to_str(pretty=True)

    def save(self, path: str | Path) -> None:
        """Write a tokenizer.json."""
        write_file(Path(path), self.to_json())

    def encode(self, text: str) -> list[int]:
        """The subword ids of one text, with no start or end token."""
        return self.encode_batch([text])[0]

    def encode_after(self, text: str) -> list[int]:
        """The ids of text that follows a special token: unlike a line, it does not begin as if after a space."""
        # The words of BERT hold no spaces; and what joins another sign to a word is spelt as its rest: ##4.
        for carrier in () if isinstance(self._engine.model, models.WordPiece) else _CARRIERS:
            alone, followed = self.encode_batch([carrier, carrier + text])
            # An unknown sign may be one token together with unknown ones after it.
            if followed[: len(alone)] == alone and self.special_tokens.unknown not in alone:
                return followed[len(alone) :]
        return self.encode(text)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """The token ids of many texts, encoded in parallel threads."""
        if self._characters:
            unknown, number_of = self.special_tokens.unknown, self._characters.get
            return [[number_of(character, unknown) for character in text] for text in texts]  # type: ignore[misc]
        with errors_of_library("the tokenizer cannot encode this text"):
            try:
                encodings = self._engine.encode_batch_fast(texts, add_special_tokens=False)
            except TypeError:  # half a surrogate pair, which is not Unicode text
                encodings = self._engine.encode_batch_fast(
                    [_without_surrogates(t) for t in texts], add_special_tokens=False
                )
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of subword ids; special tokens are skipped, bytes that are not UTF-8 become U+FFFD."""
        special = self.special_tokens.ids
        text: str = self._engine.decode([i for i in ids if i not in special], skip_special_tokens=False)
        return text

    def starts_with_space(self, token_id: int) -> bool:
        """Whether the text of a subword begins with a space, which is where most words begin."""
        return str(self._engine.id_to_token(token_id)).startswith(_SPACE)

    def token_name(self, token: int) -> str:
        """How the vocabulary spells a subword."""
        return str(self._engine.id_to_token(token))

    def token_bytes(self, token: int) -> bytes:
        """The bytes that one subword stands for; a byte-level one may hold only a part of a character."""
        name = self._engine.id_to_token(token) or ""
        if self._byte_level and all(sign in _BYTE_OF_SIGN for sign in name):
            return bytes(_BYTE_OF_SIGN[sign] for sign in name)
        return str(name).encode("utf-8")

    def token_text(self, token: int) -> str:
        """What one subword stands for, with its leading space, if it has one; a part of a character as <E4><B8>."""
        text = self._texts.get(token)
        if text is None:
            text = self._texts[token] = self.token_bytes(token).decode("utf-8", _BYTES_AS_LABELS)
        return text

    def word_of_token(self, ids: Iterable[int]) -> list[int]:
        """For each subword, the number of the word that it is part of; words are separated by spaces."""
        words: list[int] = []
        word, fresh = -1, True
        for token in ids:
            text = self.token_text(token)
            fresh = fresh or text.startswith(" ")
            if fresh and text.strip(" "):
                word, fresh = word + 1, False
            words.append(max(word, 0))
        return words


@contextmanager
def errors_of_library(what: str) -> Iterator[None]:
    """Turn what the library raises into a UserError: bare Exception for any flaw, and BaseException where it panics."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        reason = str(error).splitlines()
        raise UserError(f"{what}: {reason[0] if reason else type(error).__name__}") from None


def _is_of_characters(engine: tokenizers.Tokenizer) -> bool:
    """Whether `Tokenizer.of_characters` has made it: a table of single characters and names in brackets."""
    if not isinstance(engine.model, models.WordLevel) or engine.normalizer is not None:
        return False
    return all(len(name) == 1 or name in (*SPECIAL_TOKENS, UNKNOWN_TOKEN) for name in engine.get_vocab())


def words(text: str) -> list[str]:
    """The words of a text, as `Tokenizer.word_of_token` counts them."""
    return [word for word in text.split(" ") if word]


def _with_bounded_words(text: str) -> Iterator[str]:
    """A text, cut inside runs of signs or of white space that are too long to learn subwords from in little time."""
    begin = 0
    for run in _LONG_RUN.finditer(text) if len(text) > LONGEST_WORD else ():
        for end in range(run.start() + LONGEST_WORD, run.end(), LONGEST_WORD):
            yield text[begin:end]
            begin = end
    yield text[begin:]


def _without_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
