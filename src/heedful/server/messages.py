"""The messages between the front process and its workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from heedful.tasks.computing import Precision

# The message that clients get after a fault; the details are in the log.
FAULT = "a fault of the server's: its log says more"


@dataclass(frozen=True)
class ModelRequest:
    """What is asked of a model: `inputs` are texts or images, `options` whatever else the verb takes.

    A request may be spread over several workers: each gets a part with its own `number`, which identifies the answers
    to it, and `first` is the place of the part's first input in the whole. `name` is what the log calls the whole.
    """

    model: str
    verb: str
    inputs: Sequence[Any]
    options: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    first: int = 0
    stream: bool = False
    name: str = ""

    @property
    def sentences(self) -> int:
        """How many sentences it makes: one per input, or several samples."""
        return len(self.inputs) * int(self.options.get("samples", 1))


@dataclass(frozen=True)
class Cancel:
    """Nobody is waiting for the part with that number any more."""

    number: int


@dataclass(frozen=True)
class AskState:
    """Asks a worker how things stand; a `Done` with its `WorkerState` is the answer."""

    number: int


@dataclass(frozen=True)
class Beat:
    """Asks a worker whether it is alive, and is its answer."""


@dataclass(frozen=True)
class Leave:
    """Tells a worker to end."""


@dataclass(frozen=True)
class Partial:
    """Something to show before the result is there; it replaces what was shown before, or adds to it."""

    number: int
    value: Any
    replaces: bool = False


@dataclass(frozen=True)
class Done:
    """The result: an answer for each input, and remarks on inputs (by place) that were not read as they are."""

    number: int
    value: Any
    remarks: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Failed:
    """There is no result, through the user's mistake or through one of ours."""

    number: int
    message: str
    mistake: bool


@dataclass(frozen=True)
class ModelCard:
    """What clients are told about a model.

    `verbs` is what it can do, the main thing first, `pairs` whether it takes two texts together; `title`, `takes`,
    `gives` and `placeholder` are what its task declares for people and for the page; `engine` runs it.
    """

    name: str
    task: str
    title: str
    takes: str
    gives: str
    placeholder: str
    family: str
    parameters: int
    source_language: str | None
    target_language: str | None
    labels: list[str] | None
    pairs: bool
    verbs: list[str]
    engine: Literal["core", "torch"]
    precision: Precision


@dataclass(frozen=True)
class Ready:
    """A worker has loaded its models, on that kind of device."""

    models: list[ModelCard]
    device: str


@dataclass(frozen=True)
class Refused:
    """A worker cannot load its models, through a mistake of the user's."""

    message: str


@dataclass(frozen=True)
class WorkerState:
    """A worker: sentences waiting and running, slots for them, tokens made since its start, and bytes held if known."""

    waiting: int
    running: int
    slots: int
    tokens: int
    memory: int | None
