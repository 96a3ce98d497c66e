"""How a server is set up."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field

from heedful.tasks.computing import Computing

# Signals that end a process unless it handles them: Ctrl-C, a service manager's, and the end of the terminal.
ENDING_SIGNALS = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}


@dataclass(frozen=True)
class Limits:
    """What a server accepts: bytes, texts and seconds per request, characters per text, texts under way in all.

    `tokens` is the most that one sample of a language model may have, `worker_seconds` how long a worker may take
    to answer whether it is alive, `connections` how many clients may be connected at a time.
    """

    body_bytes: int = 16 * 2**20
    characters: int = 20_000
    texts: int = 128
    queue: int = 256
    seconds: float = 60.0
    tokens: int = 4096
    worker_seconds: float = 45.0
    connections: int = 1000


@dataclass(frozen=True)
class ServerSettings:
    """Models by name, how many workers hold them and what they compute with, the API keys, and the limits.

    Without a number there is one worker per core, or a single one on another device. The precision applies to models
    that support it. `hosts` are names that clients may use for the server besides its `address`.
    Where `models` are copies in the folder `private`, `originals` are the folders that they were copied from.
    """

    models: dict[str, str]
    workers: int | None = None
    computing: Computing = field(default_factory=Computing)
    keys: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    address: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()
    originals: dict[str, str] = field(default_factory=dict)
    private: str | None = None
