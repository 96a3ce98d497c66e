"""Tokens to text as they come: no incomplete characters, and no part of a stop string."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.text.tokenizer import Tokenizer

# No character is spread over more byte-level subwords than this.
LONGEST_CHARACTER = 4


class TextStream:
    """Gives the text of a growing row of tokens after `before`, piece by piece, up to the first stop string."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str], before: Sequence[int] = ()) -> None:
        self.tokenizer, self.stop = tokenizer, stop
        # The latest tokens whose text was given: many tokenizers give the first token of a text without its space.
        self.context = list(before[-1:])
        self.tokens: list[int] = []
        self.held = ""
        self.stopped = False

    def add(self, token: int) -> str:
        """Add a token; returns the text that is now certain."""
        self.tokens.append(token)
        text = self._text()
        if text.endswith("\ufffd") and len(self.tokens) < LONGEST_CHARACTER:
            return ""  # perhaps the beginning of a character
        self.context, self.tokens = self.tokens, []
        return self._release(text, final=False)

    def finish(self) -> str:
        """What is left once there are no more tokens."""
        text = self._text()
        self.context, self.tokens = self.tokens, []
        return self._release(text, final=True)

    def _text(self) -> str:
        """The text of the tokens that was not given yet."""
        before, whole = self.tokenizer.decode(self.context), self.tokenizer.decode([*self.context, *self.tokens])
        # Bytes that make up no character may change what others before them become.
        return whole[len(before) :] if whole.startswith(before) else self.tokenizer.decode(self.tokens)

    def _release(self, text: str, final: bool) -> str:
        if self.stopped:
            return ""
        text = self.held + text
        self.held = ""
        places = [place for stop in self.stop if (place := text.find(stop)) >= 0]
        if places:
            self.stopped = True
            return text[: min(places)]
        if final:
            return text
        keep = max((_overlap(text, stop) for stop in self.stop), default=0)
        self.held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of a text could be the beginning of a stop string."""
    return next((size for size in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:size])), 0)
