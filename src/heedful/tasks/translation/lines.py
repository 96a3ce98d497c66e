"""Translating a stream of lines: as many lines out as in, in order, in bounded memory, with several processes."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.config import require_whole
from heedful.core.model import CoreModel
from heedful.decoding.options import DecodingOptions
from heedful.errors import UserError
from heedful.machine.cores import available_cores
from heedful.machine.devices import device_type
from heedful.model_folder import check_model_folder, folder_version
from heedful.tasks.computing import Computing
from heedful.tasks.engines import choose_engine
from heedful.tasks.loading import load_translator
from heedful.tasks.remarks import remarks
from heedful.tasks.translation.answers import Translation, pharaoh
from heedful.tasks.translation.line_input import CHUNK_BYTES, ReadBytes, chunks, decoded, in_groups, with_prefixes
from heedful.tasks.translation.pipeline import DEFAULT_BATCH_SIZE, Translator
from heedful.tasks.translation.recent_answers import Chunk, InputLine, LineAnswer, RecentAnswers
from heedful.tasks.translation.segmentation import Split

if TYPE_CHECKING:
    from concurrent.futures import Future

    from heedful.machine.worker_processes import WorkerProcesses

# Lines that one process translates at a time: enough to sort by length, few enough to spread and to stream.
CHUNK_LINES = 256
# The same for heedful's engine, which needs no other processes: the fewer chunks, the less often its threads wait for
# the last line of one.
CHUNK_LINES_OF_CORE = 2048
# How many of the latest distinct lines are remembered, so that they are not translated again.
RECENT_LINES = 8192
# More than any machine has cores.
MOST_WORKERS = 1024
INVALID_UTF8 = "is not valid UTF-8: the bytes that are not are read as U+FFFD"


@dataclass(frozen=True)
class LineSettings:
    """How lines are translated, and which columns are written."""

    model: str
    options: DecodingOptions
    computing: Computing = field(default_factory=Computing)
    shortlist: bool = False
    prefix: str = ""
    scores: bool = False
    alignment: bool = False
    batch_size: int = DEFAULT_BATCH_SIZE
    split: Split = "auto"
    verbose: bool = False
    # The version that the model's files must have, if the model is loaded more than once.
    version: Mapping[str, tuple[int, int, int]] | None = None

    def of_this_version(self) -> LineSettings:
        """The settings for the model as it is now, and not for one that replaces it in the meantime."""
        return self if self.version is not None else replace(self, version=folder_version(Path(self.model)))


def translate_lines(
    settings: LineSettings,
    workers: int,
    read: ReadBytes,
    write: Callable[[list[str], int], None],
    remark: Callable[[int, str], None],
    prefixes: Sequence[str] | None = None,
) -> None:
    """Translate lines to the end of the input; each may have its own prefix, which is blank if it has none.

    `read` returns bytes as soon as there are some, and none at the end; `write` gets lines that are ready and the
    number of input lines that they answer; `remark` gets a line's number and a remark.
    """

    def groups(size: int) -> Iterable[list[InputLine] | None]:
        lines = decoded(chunks(read, size))
        return lines if prefixes is None else with_prefixes(lines, prefixes)

    _translate(settings, workers, groups, write, remark)


def translate_texts(
    settings: LineSettings,
    workers: int,
    texts: Iterable[str],
    write: Callable[[list[str], int], None],
    remark: Callable[[int, str], None],
) -> None:
    """Translate texts without line breaks, as `translate_lines` does the lines of its input."""
    _translate(settings, workers, lambda size: in_groups(texts, size), write, remark)


def _translate(
    settings: LineSettings,
    workers: int,
    groups: Callable[[int], Iterable[list[InputLine] | None]],
    write: Callable[[list[str], int], None],
    remark: Callable[[int, str], None],
) -> None:
    """Translate groups of lines; `groups` is told their size, and gives None when there is nothing to read for now."""
    size = CHUNK_LINES
    if _runs_on_core(settings):
        translator = cached_translator(settings)
        assert isinstance(translator.model, CoreModel)
        translator.model.threads = workers
        size, workers = CHUNK_LINES_OF_CORE, 1
    if workers > 1:
        settings = settings.of_this_version()
    work = _Work(settings, workers, write, remark)
    # Samples are drawn afresh for each line.
    recent = RecentAnswers(RECENT_LINES if settings.options.sampling is None else 0)
    first = 1
    try:
        for lines in groups(size):
            if lines is None:  # write what is there
                work.finish()
                continue
            work.take(recent.look_up(first, lines))
            first += len(lines)
        work.finish()
    except BaseException:  # Ctrl-C too: nobody is waiting for the other chunks any more
        work.stop(at_once=True)
        raise
    work.stop(at_once=False)


def _runs_on_core(settings: LineSettings) -> bool:
    computing, config = settings.computing, check_model_folder(Path(settings.model))
    return choose_engine(computing.engine, config, computing.device) == "core"


@dataclass
class _Work:
    """Chunks that are translated, in this process or in others, and written in order."""

    settings: LineSettings
    workers: int
    write: Callable[[list[str], int], None]
    remark: Callable[[int, str], None]
    processes: WorkerProcesses | None = None
    pending: deque[tuple[Chunk, Future[list[LineAnswer]]]] = field(default_factory=deque)

    def take(self, chunk: Chunk) -> None:
        """Translate a chunk, or have it translated: only long input is worth starting processes for."""
        if self.processes is None and self.workers > 1 and _is_full(chunk):
            # Only now: translating with the engine's threads does not need it, and need not wait for it.
            from heedful.machine.worker_processes import WorkerProcesses

            self.processes = WorkerProcesses(self.workers)
        if self.processes is None:
            self._hand_out(chunk, translate_chunk(self.settings, chunk.first, chunk.new_lines))
            return
        future = self.processes.submit(translate_chunk, self.settings, chunk.first, chunk.new_lines)
        self.pending.append((chunk, future))
        self.finish(2 * self.workers)

    def finish(self, but: int = 0) -> None:
        """Wait for all chunks except the last `but`, the oldest first, and write them."""
        while len(self.pending) > but:
            chunk, future = self.pending.popleft()
            assert self.processes is not None
            self._hand_out(chunk, self.processes.result(future))

    def stop(self, *, at_once: bool) -> None:
        """Stop the processes, if any were started."""
        if self.processes is not None:
            self.processes.stop(at_once=at_once)

    def _hand_out(self, chunk: Chunk, found: list[LineAnswer]) -> None:
        chunk.fill(found)
        for number, answer in enumerate(chunk.answers, chunk.first):
            for text in answer.remarks:
                self.remark(number, text)
        self.write([line for answer in chunk.answers for line in answer.lines], len(chunk.answers))


def _is_full(chunk: Chunk) -> bool:
    """Whether a chunk ended because it had lines enough, or bytes, of which a character has up to four."""
    return len(chunk.answers) == CHUNK_LINES or 4 * sum(len(line.text) for line in chunk.new_lines) >= CHUNK_BYTES


def cached_translator(settings: LineSettings) -> Translator:
    """The model for lines with these settings, loaded once per process."""
    version = None if settings.version is None else tuple(settings.version.items())
    return _cached_translator(settings.model, settings.computing, settings.shortlist, version)


@lru_cache(maxsize=1)
def _cached_translator(
    model: str, computing: Computing, shortlist: bool, version: tuple[Any, ...] | None
) -> Translator:
    # If it was not imported, this process was not started with it.
    processes = sys.modules.get("multiprocessing")
    one_of_several = processes is not None and processes.parent_process() is not None
    translator = load_translator(model, computing, shortlist, shared=one_of_several)
    if version is not None and tuple(folder_version(Path(model)).items()) != version:
        raise UserError(f"the model in {model} was replaced while it was used: run it again")
    return translator


def translate_chunk(settings: LineSettings, first: int, lines: list[InputLine]) -> list[LineAnswer]:
    """Translate some lines, the first of which has the number `first`, in whatever process this is."""
    translator = cached_translator(settings)
    about_lines = [[] if line.is_valid else [INVALID_UTF8] for line in lines]
    with remarks() as found:
        translations = translator.translate(
            [line.text for line in lines],
            settings.options,
            prefix=[line.prefix or settings.prefix for line in lines],
            alignment=settings.alignment,
            split=settings.split,
            batch_size=settings.batch_size,
            first_index=first,
        )
    for place, text in found:
        about_lines[place].append(text)
    for translation, about in zip(translations, about_lines, strict=True):
        if settings.verbose and translation.pieces:
            about.append(_split_remark(translation))
    return [
        LineAnswer(output_lines(each, settings), about) for each, about in zip(translations, about_lines, strict=True)
    ]


def _split_remark(translation: Translation) -> str:
    sources = [f"{each.source[:30]}..." if len(each.source) > 32 else each.source for each in translation.pieces]
    return f"was split into {len(sources)} pieces: " + " | ".join(sources)


def output_lines(translation: Translation, settings: LineSettings) -> list[str]:
    """The `nbest` lines of one input line; ranks without a hypothesis give blank lines."""
    lines = []
    for each in (translation.nbest or [translation])[: settings.options.nbest]:
        columns = [each.text]
        if settings.scores:
            columns.append(f"{each.score:.6f}" if each.tokens or each.token_scores else "")
        if settings.alignment:
            columns.append(pharaoh(each.alignment or []))
        lines.append("\t".join(columns) if any(columns) else "")
    return lines + [""] * (settings.options.nbest - len(lines))


def number_of_workers(asked: int | None, device: str) -> int:
    """The number of threads or processes: as asked, else one per core; only one if another device computes."""
    if asked is not None:
        require_whole(asked, "--workers", 1, MOST_WORKERS)
    if device_type(device) != "cpu":
        return 1
    return asked or available_cores()
