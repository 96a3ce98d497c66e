"""tokenizer.json of a foreign folder: its tokens, and what it puts around a text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from heedful.config import read_json, shown
from heedful.errors import UserError
from heedful.interop.foreign_config import ForeignConfig
from heedful.text.special_tokens import SpecialTokens
from heedful.text.tokenizer import Tokenizer, errors_of_library

# Without a post_processor, the transformers library frames texts itself if a folder names one of these, or none.
FRAMING_CLASSES = {"encoder_only": ("BertTokenizer", "BertTokenizerFast"), "encoder_decoder": ("MarianTokenizer",)}
# Stand for a text and for the second one of a pair; no vocabulary has tokens with these ids.
A, B = 2**31, 2**31 + 1
# The parts of a tokenizer that leave a text as it is.
NO_PARTS = ("normalizer", "pre_tokenizer", "decoder", "truncation", "padding")


@dataclass(frozen=True)
class ForeignTokenizer:
    """The contents of tokenizer.json, and of tokenizer_config.json if it is there."""

    file: Path
    content: dict[str, Any]
    settings: ForeignConfig

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """The id of each token, added ones too, as the tokenizers library gives them."""
        try:
            with errors_of_library("this is not a tokenizer"):
                return dict(tokenizers.Tokenizer.from_str(json.dumps(self.content)).get_vocab())
        except UserError as error:
            raise UserError(f"{self.file}: {error}") from None

    def special_name(self, setting: str, usual: str) -> str:
        """What a special token is called in this folder."""
        found = self.settings.value(setting, usual)
        name = found.get("content") if isinstance(found, dict) else found
        if not isinstance(name, str):
            raise self.settings.error(f"{setting} is {shown(found)}, expected the name of a token")
        return name

    def for_model(self, special: SpecialTokens, vocabulary_size: int) -> Tokenizer:
        """The tokenizer for a model, which puts special tokens around texts itself."""
        self._check_config()
        kept = []
        for each in self.content.get("added_tokens") or []:
            number = self.vocabulary.get(each["content"], vocabulary_size)
            is_special = bool(each["special"]) or number in vars(special).values()
            if not (is_special and number >= vocabulary_size):  # no model gives or takes it
                kept.append({**each, "special": is_special})
        try:
            tokenizer = Tokenizer.from_json(
                json.dumps({**self.content, "added_tokens": kept, "post_processor": None}), special
            )
        except UserError as error:
            raise UserError(f"{self.file}: {error}") from None
        for name in (each["content"] for each in kept if not each["special"]):
            number = self.vocabulary[name]
            if tokenizer.token_name(number) != name:
                raise UserError(f"{self.file}: the added token {shown(name)} cannot be kept at its id, {number}")
        return tokenizer

    def check_framing(self, family: str, special: SpecialTokens, *, pairs: bool) -> None:
        """Refuse a tokenizer that puts other tokens around a text, or a pair of them, than heedful does."""
        kind = self.settings.value("tokenizer_class")
        if self.content.get("post_processor") is None and (kind is None or kind in FRAMING_CLASSES.get(family, ())):
            return
        ids, segments = self._framed("A")
        if family == "encoder_only":
            self._require("a text A", (ids, segments), ([special.start, A, special.end], [0, 0, 0]))
            if pairs:
                expected = [special.start, A, special.end, B, special.end]
                self._require("two texts A and B", self._framed("A", "B"), (expected, [0, 0, 0, 1, 1]))
            return
        if family == "xlnet" and A in ids:
            ids = ids[: ids.index(A) + 1]  # its usual end is not for texts that go on
        expected = [A, special.end] if family == "encoder_decoder" else [A]
        self._require("a text A", (ids, []), (expected, []))

    def _framed(self, first: str, second: str | None = None) -> tuple[list[int], list[int]]:
        """What the post_processor makes of one text or two, each of which is one token: ids and segments."""
        content: dict[str, Any] = {"version": "1.0", **dict.fromkeys(NO_PARTS), "added_tokens": []}
        content["model"] = {"type": "WordLevel", "vocab": {"A": A, "B": B}, "unk_token": "A"}
        content["post_processor"] = self.content.get("post_processor")
        try:
            with errors_of_library("its post_processor cannot be used"):
                encoding = tokenizers.Tokenizer.from_str(json.dumps(content)).encode(first, second)
        except UserError as error:
            raise UserError(f"{self.file}: {error}") from None
        return encoding.ids, encoding.type_ids

    def _require(self, what: str, found: tuple[list[int], list[int]], expected: tuple[list[int], list[int]]) -> None:
        if found != expected:
            names = {number: name for name, number in self.vocabulary.items()} | {A: "A", B: "B"}
            made, right = (_spelt(names, *each) for each in (found, expected))
            raise UserError(f"{self.file}: its post_processor makes {made} of {what}, and only {right} is supported")

    def _check_config(self) -> None:
        """Refuse ordinary tokens that only tokenizer_config.json adds."""
        added = self.settings.value("added_tokens_decoder", {})
        for each in added.values() if isinstance(added, dict) else ():
            name = each.get("content") if isinstance(each, dict) and each.get("special") is False else None
            if isinstance(name, str) and name not in self.vocabulary:
                raise self.settings.error(
                    f"added_tokens_decoder has the token {shown(name)}, which {self.file.name} lacks: save the "
                    "tokenizer again with the transformers library"
                )


def open_tokenizer(folder: Path) -> ForeignTokenizer | None:
    """The tokenizer of a folder, if it has one that is read."""
    file, more = folder / "tokenizer.json", folder / "tokenizer_config.json"
    if not file.is_file():
        return None
    content = read_json(file)
    given = content.get("added_tokens") or []
    for each in given if isinstance(given, list) else [given]:
        name, number = (each.get("content"), each.get("id")) if isinstance(each, dict) else (None, None)
        if not isinstance(name, str) or type(number) is not int:
            raise UserError(f"{file}: added_tokens holds {shown(each)}, expected a 'content' and an 'id'")
    settings = ForeignConfig(more, read_json(more) if more.is_file() else {})
    return ForeignTokenizer(file, {**content, "truncation": None, "padding": None}, settings)


def _spelt(names: dict[int, str], ids: Sequence[int], segments: Sequence[int]) -> str:
    """Tokens as templates spell them: [CLS]:0 A:0 [SEP]:0."""
    marks = [f":{each}" for each in segments] or [""] * len(ids)
    return " ".join(f"{names.get(number, number)}{mark}" for number, mark in zip(ids, marks, strict=True))
