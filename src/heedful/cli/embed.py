"""`heedful embed`: N lines in, N vectors out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from heedful.cli.alike_remarks import alike_remarks
from heedful.cli.options import batch_size_option, computing_options
from heedful.cli.output_file import output_path
from heedful.cli.text_input import TextInput, text_input
from heedful.tasks.computing import Computing

if TYPE_CHECKING:
    import numpy as np


@click.command()
@click.argument("model")
@text_input()
@click.option("--out", metavar="FILE.npy", help="Write a numpy array; if not given, print a JSON array per line.")
@click.option(
    "--pooling",
    type=click.Choice(["mean", "class_token"]),
    help="What becomes the vector; by default what the model says.",
)
@click.option(
    "--normalize/--no-normalize",
    default=None,
    help="Scale vectors to length 1; the default, unless the model says otherwise.",
)
@batch_size_option(64)
@computing_options
def embed(
    model: str,
    given: TextInput,
    out: str | None,
    pooling: str | None,
    normalize: bool | None,
    batch_size: int,
    computing: Computing,
) -> None:
    """Turn lines of text into vectors, with an encoder of any task.

    The texts are the arguments, the lines of --input, or those of standard input. Each line gives a vector, even a
    blank one.

    \b
    heedful embed my-bert "A dog runs."
    heedful embed my-bert --out vectors.npy < sentences.txt
    """
    from heedful.cli.lines import answer_lines, load_as, remarks_on_lines, tell
    from heedful.tasks.encoding.pipeline import Encoder

    place = None if out is None else output_path(out, "--out", "vectors.npy")
    pipeline: Encoder = load_as(Encoder, model, computing, "encoder")

    def vectors(lines: list[str]) -> np.ndarray:
        return pipeline.embed(lines, pooling=pooling, normalize=normalize, batch_size=batch_size)  # type: ignore[arg-type]

    if place is None:
        answer_lines(given, lambda first, lines: [json.dumps(row.tolist()) for row in vectors(lines)])
        return

    def groups() -> Iterator[np.ndarray]:
        yield vectors([])
        with alike_remarks(tell) as told:
            for first, lines in given.lines():
                with remarks_on_lines(first, told):
                    found = vectors(lines)
                yield found

    _save(place, groups())


def _save(path: Path, groups: Iterator[np.ndarray]) -> None:
    """Write groups of rows as one array, which gets its name when it is complete; only one group is held at a time."""
    import numpy as np

    from heedful.files import replacing

    if path.exists() and not path.is_file():  # a device or a pipe: the number of rows must come first
        with replacing(path) as place, place.open("wb") as file:
            rows = np.concatenate(list(groups))
            _write_header(file, rows, len(rows))
            file.write(rows.tobytes())
        return
    count = 0
    with replacing(path) as temporary, temporary.open("wb") as file:
        for group in groups:
            if not count:  # numpy leaves room in the header for any number of rows
                file.seek(0)
                _write_header(file, group, 0)
            count += len(group)
            file.write(group.tobytes())
        file.seek(0)
        _write_header(file, group, count)


def _write_header(file: BinaryIO, rows: np.ndarray, count: int) -> None:
    """Write the header of an array with this many rows like these."""
    from numpy.lib import format as numpy_format

    shape = (count, *rows.shape[1:])
    header = {"descr": numpy_format.dtype_to_descr(rows.dtype), "fortran_order": False, "shape": shape}
    numpy_format.write_array_header_1_0(file, header)
