"""Whole commands, text in and text out: `heedful translate` beside a program with `tokenizers` and CTranslate2."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import sacrebleu

from benchmarks.speed.comparisons import Comparisons
from benchmarks.speed.contender import BEAM
from benchmarks.speed.corpus import WORK
from benchmarks.speed.engine_decoding import Subject
from benchmarks.speed.engine_goals import FILE, MEMORY, START
from benchmarks.speed.environments import python_of
from benchmarks.speed.measured_command import Command
from benchmarks.speed.measuring import interleaved
from benchmarks.speed.peer import DRIVERS
from benchmarks.speed.setups import LOOKS
from heedful.machine.cores import available_cores

AGAINST = "tokenizers and CTranslate2 int8"
# Per cent of the lines: either rounds in its own way, so that some differ, but not most.
FEWEST_SAME = 50


class Commands:
    """Both commands for one model, and a file of so many lines, and one of a single line."""

    def __init__(self, subject: Subject, lines: int) -> None:
        self.subject, self.cores = subject, available_cores()
        self.many = _written(f"many-{subject.width}.txt", subject.texts[:lines])
        self.one = _written("one.txt", subject.texts[:1])
        self.count = min(lines, len(subject.texts))
        self.best = self._fastest(self.many, ((self.cores, 1, 32), (self.cores, 1, 64), (1, self.cores, 64)))

    def whole_file(self, found: Comparisons, references: list[str] | None, rounds: int) -> None:
        """Seconds of the file of many lines."""
        both = self._both(self.many, self.best)
        times = interleaved({each.name: each.seconds for each in both}, rounds)
        details = agreement(*(each.lines() for each in both), references) if self.subject.trained else {}
        found.add(
            f"{self.subject.name}: {self.count} lines from a file to a file, int8, beam {BEAM}",
            AGAINST,
            "time",
            times["heedful"],
            times[AGAINST],
            "s",
            FILE,
            setting=_words(self.best),
            **details,
        )

    def start(self, found: Comparisons, rounds: int) -> None:
        """Seconds from the start of a process to the end of the first translation."""
        best = self._fastest(self.one, ((1, 1, 1), (self.cores, 1, 1), (1, self.cores, 1)))
        times = interleaved({each.name: each.seconds for each in self._both(self.one, best)}, rounds)
        what = f"{self.subject.name}: from process start to the first translation, int8"
        found.add(what, AGAINST, "time", times["heedful"], times[AGAINST], "s", START, setting=_words(best))

    def memory(self, found: Comparisons, rounds: int) -> None:
        """Megabytes of all processes while the file of many lines is translated."""
        both = self._both(self.many, self.best)
        sizes = interleaved({each.name: each.megabytes for each in both}, rounds, warm=True)
        what = f"{self.subject.name}: peak memory, {self.count} lines, int8"
        found.add(what, AGAINST, "memory", sizes["heedful"], sizes[AGAINST], "MB", MEMORY, setting=_words(self.best))

    def _both(self, source: Path, setting: tuple[int, int, int]) -> list[Command]:
        return [self._ours(source), self._theirs(source, setting)]

    def _ours(self, source: Path) -> Command:
        words = [
            str(Path(sys.executable).with_name("heedful")),
            "translate",
            str(self.subject.folder),
            "--precision",
            "int8",
        ]
        words += ["--beam", str(BEAM), "--length-penalty", "0"]
        if not self.subject.trained:
            shortest, longest = self.subject.lengths
            words += ["--min-length", str(shortest), "--max-length", str(longest)]
        return Command("heedful", words, source, WORK / "ours.txt")

    def _theirs(self, source: Path, setting: tuple[int, int, int]) -> Command:
        inter, intra, batch = setting
        words = [str(python_of("ctranslate2")), str(DRIVERS / "ctranslate2_lines.py")]
        words += [str(self.subject.exports["int8"]), "--beam", str(BEAM)]
        words += ["--inter", str(inter), "--intra", str(intra), "--batch", str(batch)]
        shortest, longest = self.subject.lengths
        words += ["--shortest", str(shortest), "--longest", str(longest)]
        variables = {"OMP_NUM_THREADS": str(intra)}
        return Command(AGAINST, words, source, WORK / "theirs.txt", variables, frozenset({"PYTHONPATH"}))

    def _fastest(self, source: Path, settings: tuple[tuple[int, int, int], ...]) -> tuple[int, int, int]:
        """The best of several settings of theirs, by a few looks at each after one that warms up."""
        times = {}
        for setting in dict.fromkeys(settings):
            command = replace(self._theirs(source, setting), target=WORK / "look.txt")
            times[setting] = min([command.seconds() for _ in range(1 + LOOKS)][1:])
        return min(times, key=times.__getitem__)


def agreement(ours: list[str], theirs: list[str], references: list[str] | None) -> dict[str, Any]:
    """How many lines are the same, and the BLEU of either; an error if the two do not translate the same text."""
    same = 100 * sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(ours)
    if same < FEWEST_SAME:
        raise ValueError(f"only {same:.0f} % of the lines are the same: one of the two does other work")
    details: dict[str, Any] = {"same_lines": round(same, 1)}
    if references:
        scores = [sacrebleu.BLEU().corpus_score(each, [references[: len(ours)]]).score for each in (ours, theirs)]
        details["bleu"] = [round(score, 2) for score in scores]
    return details


def _words(setting: tuple[int, int, int]) -> str:
    return "inter {}, intra {}, batch {}".format(*setting)


def _written(name: str, lines: list[str]) -> Path:
    file = WORK / name
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return file
