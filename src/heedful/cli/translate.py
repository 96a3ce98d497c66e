"""`heedful translate`: N lines in, N lines out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from heedful.cli.alike_remarks import alike_remarks
from heedful.cli.options import batch_size_option, computing_options, repetition_options, split_option
from heedful.cli.startup import imports_that_stay
from heedful.cli.text_input import TextInput, invalid_line, text_input
from heedful.errors import UserError

if TYPE_CHECKING:
    from heedful.tasks.translation.lines import LineSettings


@click.command()
@click.argument("model")
@text_input()
@click.option(
    "--output", "output_file", metavar="FILE", help="Write to a file (also .gz or .xz) instead of standard output."
)
@click.option("--beam", type=int, show_default="5", help="Hypotheses kept at each step; 1 is greedy search.")
@click.option(
    "--nbest",
    type=int,
    default=1,
    show_default=True,
    help="Lines of output for each line of input, best first.",
)
@click.option("--length-penalty", type=float, default=0.6, show_default=True, help="The alpha of the paper.")
@click.option("--min-length", type=int, default=1, show_default=True, help="The fewest subwords in a translation.")
@click.option(
    "--max-length", type=int, help="The most subwords in a translation; by default 50 more than in the input."
)
@click.option("--prefix", default="", metavar="TEXT", help="Text that every translation must begin with.")
@click.option("--prefix-file", metavar="FILE", help="One prefix per line; a blank line means none.")
@click.option("--sample", is_flag=True, help="Draw translations at random instead of beam search.")
@click.option("--temperature", type=float, show_default="1.0", help="With --sample: below 1 is less random.")
@click.option("--top-k", type=int, help="With --sample: only from the K likeliest subwords.")
@click.option("--top-p", type=float, help="With --sample: only from the likeliest subwords that make up this share.")
@click.option("--seed", type=int, show_default="0", help="With --sample: the same seed gives the same output.")
@repetition_options
@split_option("Translate a line sentence by sentence: if it is unlike the training lines (auto), always, or never.")
@click.option(
    "--scores",
    is_flag=True,
    help="Add a column: log-probability over the length penalty; of a line in pieces, the sum of theirs, without it.",
)
@click.option("--alignment", is_flag=True, help="Add a column: aligned words as source-target pairs (0-0 1-2 ...).")
@batch_size_option(128, "Lines decoded at a time; does not affect the output.")
@click.option(
    "--workers",
    type=int,
    help="Threads, or processes with torch; one per core. Does not affect the output.",
)
@click.option("--verbose", is_flag=True, help="Say on standard error which lines were split, and where.")
@click.option(
    "--shortlist", is_flag=True, help="Only use subwords that the sentence may need; see `heedful shortlist` first."
)
@computing_options
def translate(model: str, given: TextInput, output_file: str | None, **options: Any) -> None:
    """Translate lines of text from standard input to standard output.

    The texts are the arguments, the lines of --input, or those of standard input. Each line of input gives one line of
    output, in the same order; blank lines stay blank. Columns are separated by tabs.

    \b
    heedful translate en-de "A dog runs."
    heedful translate en-de < in.txt > out.txt
    echo 'A dog runs.' | heedful translate en-de --nbest 3 --scores
    heedful translate en-de --precision int8 < in.txt > out.txt
    heedful translate en-de --split sentences --verbose < paragraphs.txt > out.txt
    """
    with imports_that_stay():
        from heedful.tasks.translation.lines import INVALID_UTF8, number_of_workers, translate_lines
    settings = line_settings(model, options)  # first: a wrong option must not wait for input
    workers = number_of_workers(options["workers"], options["computing"].device)
    with ExitStack() as stack:
        read = given.reader()
        prefixes = _prefixes(options["prefix_file"], given)
        target: BinaryIO | BufferedIOBase = sys.stdout.buffer
        if output_file is not None:
            from heedful.cli.line_file import line_file

            target = stack.enter_context(line_file(output_file, "--output"))
        advance, tell = stack.enter_context(_line_count())

        def write(lines: list[str], count: int) -> None:
            target.write("".join(line + "\n" for line in lines).encode("utf-8"))
            target.flush()
            advance(count)

        told = stack.enter_context(alike_remarks(lambda text: tell(f"heedful: {text}")))

        def remark(number: int, text: str) -> None:
            told(f"line {number} {invalid_line(given.encoding) if text == INVALID_UTF8 else text}")

        translate_lines(settings, workers, read, write, remark, prefixes)


def line_settings(model: str, options: dict[str, Any]) -> LineSettings:
    """The checked settings of a translation, from the command line's options."""
    from heedful.decoding.options import DEFAULT_BEAM, DecodingOptions, SamplingOptions
    from heedful.model_folder import check_model_folder
    from heedful.tasks.translation.lines import LineSettings

    check_model_folder(Path(model))
    sampling = None
    drawing = {name: options[name] for name in ("temperature", "top_k", "top_p", "seed") if options[name] is not None}
    if options["sample"]:
        sampling = SamplingOptions(**drawing)
    elif drawing:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in drawing)
        raise UserError(f"{flags}: only for sampling: add --sample, or leave this out")
    search = DecodingOptions(
        beam=DEFAULT_BEAM if options["beam"] is None else options["beam"],
        nbest=options["nbest"],
        length_penalty=options["length_penalty"],
        min_length=options["min_length"],
        max_length=options["max_length"],
        sampling=sampling,
        repetition_penalty=options["repetition_penalty"],
        no_repeat_ngram=options["no_repeat_ngram"],
    )
    if any("\ud800" <= character <= "\udfff" for character in options["prefix"]):
        raise UserError("--prefix is not valid UTF-8: give it in the encoding of your terminal, or in a --prefix-file")
    if options["prefix"] and options["prefix_file"]:
        raise UserError("--prefix is for all lines, and --prefix-file has one for each: give one of them")
    if options["shortlist"] and (options["prefix"] or options["prefix_file"]):
        raise UserError("a prefix may need any subword: leave out --shortlist")
    names = ("computing", "shortlist", "prefix", "scores", "alignment", "batch_size", "split", "verbose")
    return LineSettings(model, search, **{name: options[name] for name in names})


def _prefixes(file: str | None, given: TextInput) -> list[str] | None:
    """The prefixes of all lines, one for each."""
    if file is None:
        return None
    from heedful.cli.lines import tell
    from heedful.text.whole_files import read_texts

    return read_texts(file, tell, given.encoding)


@contextmanager
def _line_count() -> Iterator[tuple[Callable[[int], None], Callable[[str], None]]]:
    """Functions that count lines and print remarks; the count shows on a terminal, unless the output goes there too."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield lambda count: None, partial(print, file=sys.stderr)
        return
    # Only now: most translations go without it, and need not wait for it.
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.completed:,} lines"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tell = partial(progress.console.print, markup=False, highlight=False, soft_wrap=True)
        yield partial(progress.advance, progress.add_task("", total=None)), tell
