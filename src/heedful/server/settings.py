"""How a server is set up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Limits:
    """What a server takes: bytes, texts and seconds of a request, characters of a text, texts under way in all.

    `tokens` is the most that one sample of a language model may have.
    """

    body_bytes: int = 16 * 2**20
    characters: int = 20_000
    texts: int = 128
    queue: int = 256
    seconds: float = 60.0
    tokens: int = 4096


@dataclass(frozen=True)
class ServerSettings:
    """Models by name, how many workers hold them and on what, the keys that open the door, and the limits.

    Without a number there is a worker for each core, or one where another device computes. The precision is that of
    models that translate.
    """

    models: dict[str, str]
    workers: int | None = None
    device: str = "auto"
    precision: Literal["fp32", "int8"] = "fp32"
    keys: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
