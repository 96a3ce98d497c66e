"""Files that commands read, and how they are to be read."""

from __future__ import annotations

from pathlib import Path

import click

from heedful.errors import UserError
from heedful.text.corpus_file import CorpusFile
from heedful.text.encodings import LineCensus
from heedful.text.row_layout import RECOGNISED, RowOptions
from heedful.text.text_files import MAX_LINE_BYTES, expand_files, unpacked_blocks


def one_file(pattern: str) -> Path:
    """The one file that a name or a pattern stands for."""
    files = expand_files([pattern])
    if len(files) != 1:
        raise UserError(f"{pattern} stands for {len(files)} files: name one")
    return Path(files[0])


def read_texts(pattern: str, encoding: str | None = None) -> list[str]:
    """The lines of a text file (plain, .gz or .xz); bytes that are not UTF-8 become U+FFFD, with a remark."""
    path = one_file(pattern)
    texts = []
    blocks = list(CorpusFile(str(path), path, encoding).line_blocks())  # all, so that a file is refused before remarks
    for number, line in enumerate((line for lines in blocks for line in lines), 1):
        if len(line) > MAX_LINE_BYTES:
            raise UserError(f"line {number} of {path} is longer than {MAX_LINE_BYTES:,} bytes: split it")
        try:
            texts.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            click.echo(f"heedful: line {number} of {path} is not valid UTF-8: read with U+FFFD", err=True)
            texts.append(line.decode("utf-8", "replace"))
    return texts


def read_aligned(source: str, target: str, encoding: str | None = None) -> tuple[list[str], list[str]]:
    """The lines of two files that must have equally many."""
    sources, targets = read_texts(source, encoding), read_texts(target, encoding)
    if len(sources) != len(targets):
        raise UserError(
            f"{source} has {len(sources):,} lines, but {target} has {len(targets):,}: each line needs its counterpart"
        )
    if not sources:
        raise UserError(f"{source} and {target} are empty")
    return sources, targets


def read_pairs(file: str, encoding: str | None = None, layout: RowOptions = RECOGNISED) -> tuple[list[str], list[str]]:
    """The two columns of a table file, read as training reads it; a row without one of them is an error."""
    from heedful.tasks.translation.corpus import ParallelCorpus

    sources: list[str] = []
    targets: list[str] = []
    layout.check()
    for block in ParallelCorpus.from_tsv([file], encoding=encoding, row_options=layout).blocks():
        for place in block.missing:
            if block.sources[place] or block.targets[place]:
                raise UserError(f"line {block.line(place)} of {file} has fewer than two columns: source and target")
        sources += [text.decode("utf-8", "replace") for text in block.sources]
        targets += [text.decode("utf-8", "replace") for text in block.targets]
    if not sources:
        raise UserError(f"{file} is empty")
    return sources, targets


def read_whole_texts(patterns: tuple[str, ...], encoding: str | None = None) -> list[str]:
    """The contents of text files; bytes that are not UTF-8 become U+FFFD, with a remark."""
    texts = []
    for file in expand_files(patterns):
        raw = b"".join(unpacked_blocks(file, encoding)).replace(b"\r\n", b"\n")
        census = LineCensus(file, encoding)
        census.look(raw)
        census.finish()
        text = raw.decode("utf-8", "replace")
        if text.encode("utf-8") != raw:
            click.echo(f"heedful: {file} is not valid UTF-8: read with U+FFFD", err=True)
        texts.append(text)
    return texts


def parse_resolution(text: str | None) -> tuple[int, int] | None:
    """`40` or `40x56` as height and width."""
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.strip().isdecimal() for part in parts):
        raise UserError(f"--resolution {text!r}: expected a number of pixels such as 40, or height and width as 40x56")
    return int(parts[0]), int(parts[-1])
