"""The command `heedful`."""

from __future__ import annotations

import importlib
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import click

import heedful
from heedful.cli.usage_errors import Commands, usage_message
from heedful.errors import UserError
from heedful.machine.memory import keep_freed_memory, out_of_memory
from heedful.machine.torch_needed import is_about_torch, torch_missing
from heedful.storage import storage_error

# Verb -> one line of help; the file of the same name holds its command, and is imported when it is used.
VERBS = {
    "demo": "Train and try a small model on built-in data, within two minutes.",
    "train": "Train a model from your own files.",
    "prepare": "Prepare the data of a training run, for example on a machine without GPUs.",
    "translate": "Translate lines of text.",
    "generate": "Continue a text with a language model.",
    "fill": "Guess hidden words with a masked language model.",
    "classify": "Label lines of text, or say what images show.",
    "tag": "Tag the words of lines of text.",
    "embed": "Turn lines of text into vectors.",
    "evaluate": "Measure a model on a test set.",
    "inspect": "Draw what a model attends to, or how its training went.",
    "explain": "Follow a token through a model, step by step.",
    "shortlist": "Let translation compute only the subwords that a sentence may need.",
    "score": "Give the log-probability of given translations.",
    "serve": "Serve models over HTTP: an API and a web page.",
    "info": "Show what a model folder holds.",
    "doctor": "Check that heedful can work on this machine.",
    "import": "Make a heedful model from a Hugging Face folder.",
    "export": "Make a model for CTranslate2 from a heedful model.",
    "claims": "Measure what the papers say about Transformers, on this machine.",
    "plan": "Plan the training of a model on many GPUs.",
    "bench": "Compare the speed of heedful with other toolkits.",
}


class _ReaderGoneError(Exception):
    """A BrokenPipeError, which click would turn into an exit with 1."""


class _ClosedOutput(io.RawIOBase):
    """Standard output that was closed before the command began."""

    def __init__(self, place: IO[str]) -> None:
        self.place, self.told = place, False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.place.fileno()

    def write(self, content: Any) -> int:
        if self.told:  # what was still buffered, when the process ends
            return len(content)
        self.told = True
        raise UserError("standard output is closed, so the answer cannot be written: send it to a file or a pipe")


class _ClosedInput(io.RawIOBase):
    """Standard input that was closed before the command began."""

    def __init__(self, place: IO[str]) -> None:
        self.place = place

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        raise UserError("standard input is closed: give a text after the model, or name a file")

    def readinto(self, buffer: Any) -> int:
        return self.fileno()


class _Verbs(Commands):
    """The verbs, imported only when called: help must not wait for torch."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error
        except ModuleNotFoundError as error:
            if not is_about_torch(error):
                raise
            raise torch_missing(f"`heedful {context.invoked_subcommand}`") from None

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name in VERBS and name not in self.commands:
            # `import` is a keyword of Python.
            place = "import_" if name == "import" else name
            self.commands[name] = getattr(importlib.import_module(f"heedful.cli.{place}"), place)
        return super().get_command(context, name)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(heedful.__version__, prog_name="heedful")
def cli() -> None:
    """Train, run and look into Transformers: two text files in, a translation model out.

    \b
    heedful demo
    heedful train translation --source train.en --target train.de --out en-de
    heedful translate en-de < in.txt > out.txt
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    keep_freed_memory()
    _mend_streams()
    try:
        code = cli.main(arguments, prog_name="heedful", standalone_mode=False)
        sys.stdout.flush()  # here, where a full disk can still be reported
    except (KeyboardInterrupt, click.exceptions.Abort):  # click turns the former into the latter
        print("heedful: interrupted", file=sys.stderr)
        sys.exit(130)
    except UserError as error:
        fail(str(error))
    except (_ReaderGoneError, BrokenPipeError):
        # The reader of our output has gone, as `head` does; what is still buffered for it goes nowhere.
        _forget_output()
        sys.exit(0)
    except OSError as error:
        named = isinstance(error.filename, str)
        text = str(storage_error(error, Path(error.filename) if named else _output_path()))
        if not named:
            _forget_output()
        fail(text)
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        fail("memory ran out: try a smaller --batch-size or fewer --workers")
    except click.ClickException as error:
        fail(usage_message(error))
    sys.exit(code if isinstance(code, int) else 0)


def _closed(name: str, place: IO[str]) -> IO[str]:
    """What takes the place of a standard stream that is closed; nobody misses standard error."""
    if name == "stdin":
        return io.TextIOWrapper(io.BufferedReader(_ClosedInput(place)))
    return io.TextIOWrapper(io.BufferedWriter(_ClosedOutput(place))) if name == "stdout" else place


def _mend_streams() -> None:
    """Replace standard streams that were closed (as in `2>&-`), and give output a buffer.

    Reading closed input and writing to closed output are errors. With PYTHONUNBUFFERED, which container images set,
    output has no buffer, and a disk that takes only a part of what is written goes unnoticed.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Opened for output too: it takes the file number that the next file would get.
            empty = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, _closed(name, empty))
    raw, is_own = getattr(sys.stdout, "buffer", None), sys.stdout is sys.__stdout__
    if isinstance(raw, io.FileIO) and is_own:  # and not what a program that calls `main` put there
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, line_buffering=True)


def _forget_output() -> None:
    """Discard what is still buffered for standard output: it cannot be written."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _output_path() -> Path | None:
    """The path of standard output, if the system knows one: an error that names no file comes from there."""
    link = Path("/proc/self/fd/1")
    target = link.readlink() if link.exists() else None
    return target if target and target.is_absolute() else None


def fail(text: str) -> None:
    """Say what is wrong and exit with 2."""
    from heedful.cli.lines import tell

    tell(text)
    sys.exit(2)
