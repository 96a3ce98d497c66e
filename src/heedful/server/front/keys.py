"""API keys."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from heedful.server.front.errors import UNAUTHORIZED, ApiError


class Keys:
    """The API keys, compared in a time that does not reveal how much of a guess was right."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.digests = [_digest(key) for key in keys]

    def accept(self, guess: str) -> bool:
        """Whether that is one of the keys, or none is needed."""
        digest = _digest(guess)
        found = [hmac.compare_digest(digest, each) for each in self.digests]
        return any(found) or not found


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def key_in(headers: Mapping[bytes, bytes]) -> str:
    """The key that a request carries, or an empty one."""
    given = headers.get(b"x-api-key", b"").decode("utf-8", "surrogateescape")
    scheme, _, token = headers.get(b"authorization", b"").decode("utf-8", "surrogateescape").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else given


def unauthorized() -> ApiError:
    """The answer to a request without the right key."""
    message = "the API key is missing or wrong: send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`"
    return ApiError(UNAUTHORIZED, message, {"WWW-Authenticate": "Bearer"})
