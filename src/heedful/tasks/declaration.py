"""What a task declares, without torch: how it is trained, measured, used, served and shown."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from heedful.prepared.mixture import parse_weights

# What a model takes and gives; the page has a workspace for each pair that occurs.
Takes = Literal["text", "prompt", "masked text", "texts", "image"]
Gives = Literal["text", "label", "spans", "words", "vectors"]
# The options of a command, by name; what reports something odd to a person; figures, and the lines that show them.
Options = dict[str, Any]
Remark = Callable[[str], None]
Measured = tuple[dict[str, Any], list[str]]


def resolve(place: str) -> Any:
    """What a place such as `heedful.tasks.translation.job:TranslationData` names, imported only now."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class Option:
    """An option of a command: its names as click takes them, and its help text."""

    names: tuple[str, ...]
    help: str
    metavar: str | None = "FILE"
    multiple: bool = False
    choices: tuple[str, ...] = ()
    default: Any = None
    kind: Callable[[str], Any] | None = None
    is_flag: bool = False


ENCODING = Option(
    ("--encoding",),
    "The encoding of the text files, such as iso-8859-1; by default utf-8, or what their byte order mark says.",
    "NAME",
)
ROWS = (
    Option(("--columns",), "Which columns to read, by number or name: 2,1 or label,text.", "LIST"),
    Option(("--header/--no-header",), "Whether the first row names the columns.", None),
    Option(("--delimiter",), "What separates columns: tab, comma, semicolon, pipe, space, or a character.", "SIGN"),
)
WEIGHTS = Option(
    ("--weights",),
    "Mix corpora, each time a file option is given one: its share of an epoch's examples, as in 3,1.",
    "LIST",
    kind=parse_weights,
)
FROM = Option(
    ("--from", "from_model"),
    "Start from the weights, the settings and the vocabulary of this model folder.",
    "MODEL",
)


@dataclass(frozen=True)
class Training:
    """A command of `heedful train`: its help, the dataclass of what users give, and how the model is then used."""

    command: str
    help: str
    data: str
    options: Sequence[Option]
    usage: str


@dataclass(frozen=True)
class Evaluation:
    """How `heedful evaluate` measures a model.

    `function` takes the model's folder, the options and a `Remark`, and returns what it `Measured`; `needed` are the
    options that it cannot do without.
    """

    function: str
    options: Sequence[Option]
    needed: Sequence[str] = ()


@dataclass(frozen=True)
class Demo:
    """A demo of `heedful demo`: its module has WHAT, `run_demo` and `show`."""

    name: str
    module: str
    about: str
    budget: str


@dataclass(frozen=True)
class Verb:
    """Something that a model does for a client of the server.

    `does` completes the phrase "a model that". A verb that is computed in one go has a `DirectVerb`, at the place
    `direct`; without one it is decoded step by step. If `summary` is given, the server makes the verb's route by
    itself, from what the task takes and gives.
    """

    name: str
    does: str
    direct: str | None = None
    summary: str | None = None


@dataclass(frozen=True)
class TaskDeclaration:
    """One task: its name in config.json, a title to show, and where its parts are.

    `families` are the families of models that do it, and `head` is the head that an encoder needs for it. The page
    uses the first of the verbs, and shows `placeholder` where there is no text yet. `scores` are what a validation
    measures besides the loss.
    """

    name: str
    title: str
    pipeline: str
    families: Sequence[str]
    takes: Takes
    gives: Gives
    verbs: Sequence[Verb]
    head: str | None = None
    placeholder: str = ""
    scores: Sequence[str] = ()
    training: Training | None = None
    evaluation: Evaluation | None = None
    demo: Demo | None = None
