"""Translating a stream of lines: as many lines out as in, in order, in bounded memory, by several processes."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache

from heedful.alignment import pharaoh
from heedful.data.text_files import BYTE_ORDER_MARK
from heedful.decoding.options import DecodingOptions
from heedful.errors import UserError
from heedful.pipelines.loading import Precision, load_translator
from heedful.pipelines.translator import LongTextWarning, Translation, Translator

# Lines that one process translates at a time: enough to sort by length, few enough to spread and to stream.
CHUNK_LINES = 256
# Seconds to wait for another line before those that are there are translated.
PATIENCE = 0.01


@dataclass(frozen=True)
class LineSettings:
    """How lines are translated, and which columns are written."""

    model: str
    options: DecodingOptions
    device: str = "auto"
    precision: Precision = "fp32"
    prefix: str = ""
    scores: bool = False
    alignment: bool = False
    batch_size: int = 64


ReadBytes = Callable[[], bytes]


@dataclass(frozen=True)
class TranslatedChunk:
    """Lines to write, and remarks by the number of the line within the chunk."""

    lines: list[str]
    remarks: list[tuple[int, str]]


def translate_lines(
    settings: LineSettings,
    workers: int,
    read: ReadBytes,
    write: Callable[[list[str], int], None],
    remark: Callable[[int, str], None],
) -> None:
    """Translate lines to the end of the input.

    `read` gives the bytes that there are, at the latest when there are some, and none at the end; `write` gets
    lines that are ready and the number of input lines that they answer; `remark` a line's number and a remark.
    """
    pending: deque[tuple[int, int, Future[TranslatedChunk]]] = deque()
    executor: ProcessPoolExecutor | None = None
    others = set(multiprocessing.active_children())

    def finish(first: int, count: int, chunk: TranslatedChunk) -> None:
        for offset, text in chunk.remarks:
            remark(first + offset, text)
        write(chunk.lines, count)

    def finish_oldest() -> None:
        first, count, future = pending.popleft()
        finish(first, count, future.result())

    first = 1
    try:
        for lines in chunks(read, CHUNK_LINES):
            if lines is None:  # nothing more to read for now: hand out what there is
                while pending:
                    finish_oldest()
                continue
            if first == 1:
                lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
            if executor is None and workers > 1 and len(lines) == CHUNK_LINES:
                # Only long input is worth starting processes for.
                executor = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker)
            if executor:
                pending.append((first, len(lines), executor.submit(translate_chunk, settings, first, lines)))
                if len(pending) > 2 * workers:
                    finish_oldest()
            else:
                finish(first, len(lines), translate_chunk(settings, first, lines))
            first += len(lines)
        while pending:
            finish_oldest()
    except BrokenProcessPool:
        raise UserError(
            "a worker process ended unexpectedly, perhaps for lack of memory: try fewer --workers"
        ) from None
    except BaseException:  # Ctrl-C too: nobody waits for the other chunks any more
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        if executor:
            executor.shutdown(wait=False, cancel_futures=True)


def chunks(read: ReadBytes, size: int) -> Iterator[list[bytes] | None]:
    """Lines in lists of up to `size`, without waiting for more than there is; None when it comes to a wait."""
    # A line, the end (None), or what went wrong in reading.
    lines: queue.Queue[bytes | Exception | None] = queue.Queue(maxsize=4 * size)
    threading.Thread(target=_read_lines, args=(read, lines), daemon=True).start()
    line: bytes | Exception | None = b""
    while line is not None:
        try:
            line = lines.get(timeout=PATIENCE)
        except queue.Empty:
            yield None
            line = lines.get()
        chunk: list[bytes] = []
        while line is not None:
            if isinstance(line, Exception):
                raise line
            chunk.append(line)
            if len(chunk) == size:
                break
            try:
                line = lines.get(timeout=PATIENCE)
            except queue.Empty:
                break
        if chunk:
            yield chunk


def _read_lines(read: ReadBytes, lines: queue.Queue[bytes | Exception | None]) -> None:
    try:
        rest = b""
        while block := read():
            *complete, rest = (rest + block).split(b"\n")
            for line in complete:
                lines.put(line)
        if rest:
            lines.put(rest)
        lines.put(None)
    except Exception as error:  # it is raised where the lines are taken
        lines.put(error)


def _start_worker() -> None:
    """Let Ctrl-C act on the main process alone, and end when that is gone, however it went."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@lru_cache(maxsize=1)
def cached_translator(model: str, device: str, precision: Precision) -> Translator:
    """The model of that folder, loaded once a process."""
    return load_translator(model, device, precision)


def translate_chunk(settings: LineSettings, first: int, raw_lines: list[bytes]) -> TranslatedChunk:
    """Translate some lines, of which the first has the number `first`, in whatever process this is."""
    translator = cached_translator(settings.model, settings.device, settings.precision)
    remarks: list[tuple[int, str]] = []
    texts = []
    for offset, raw in enumerate(raw_lines):
        raw = raw.removesuffix(b"\r")
        try:
            texts.append(raw.decode("utf-8"))
        except UnicodeDecodeError:
            texts.append(raw.decode("utf-8", "replace"))
            remarks.append((offset, "is not valid UTF-8: the bytes that are not are read as U+FFFD"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LongTextWarning)
        translations = translator.translate(
            texts,
            settings.options,
            prefix=settings.prefix,
            alignment=settings.alignment,
            batch_size=settings.batch_size,
            first_index=first,
        )
    remarks += [(each.message.index, str(each.message)) for each in caught if isinstance(each.message, LongTextWarning)]
    lines = [line for each in translations for line in output_lines(each, settings)]
    return TranslatedChunk(lines, sorted(remarks))


def output_lines(translation: Translation, settings: LineSettings) -> list[str]:
    """The `nbest` lines of one input line; ranks that there are no hypotheses for give blank lines."""
    lines = []
    for each in (translation.nbest or [translation])[: settings.options.nbest]:
        columns = [each.text]
        if settings.scores:
            columns.append(f"{each.score:.6f}" if each.tokens or each.token_scores else "")
        if settings.alignment:
            columns.append(pharaoh(each.alignment or []))
        lines.append("\t".join(columns) if any(columns) else "")
    return lines + [""] * (settings.options.nbest - len(lines))
