"""From a model folder to a CTranslate2 folder, which is compared with our own model before it is released."""

from __future__ import annotations

import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from heedful.decoding import DecodingOptions, Request, decode
from heedful.errors import UserError
from heedful.files import new_folder
from heedful.interop.ctranslate2 import convert, token_names
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.model_folder import LoadedModel, load_model_folder
from heedful.tasks.translation.task import collate

Quantization = Literal["float32", "int8"]

# How many made-up sentences both translate, and the most tokens that these have, on either side.
SENTENCES = 48
LONGEST_SOURCE, LONGEST_TARGET = 23, 31
# The largest relative difference in the log-probability of a text, and the median one where weights are rounded.
TOLERANCE, TOLERANCE_INT8 = 1e-3, 0.2
# Two tokens whose log-probabilities differ by less may swap places.
TIE = 1e-3


@dataclass(frozen=True)
class Comparison:
    """The exported model compared with ours.

    `differences` are the relative ones between log-probabilities of random texts, and `search_differences` those for
    the texts that CTranslate2 finds; `same_greedy` and `same_beam` count the sentences for which greedy search and five
    beams give the same text, `unexplained` those for which greedy search gives another one without a near tie.
    """

    differences: list[float]
    search_differences: list[float]
    same_greedy: int
    same_beam: int
    unexplained: int


def export_folder(folder: Path, out: Path, quantization: Quantization = "float32") -> Comparison:
    """Make a CTranslate2 folder from a model folder; if the two disagree, nothing is left behind."""
    try:
        import ctranslate2
    except ImportError:
        raise UserError("the package ctranslate2 is missing: pip install 'heedful[ctranslate2]'") from None
    if out.exists():
        raise UserError(f"{out} already exists: choose another folder")
    loaded = load_model_folder(folder)

    def made(place: Path, precision: Quantization) -> Comparison:
        spec = convert(loaded)
        spec.validate()
        spec.optimize(precision)
        place.mkdir(exist_ok=True)
        spec.save(str(place))
        return compare(loaded, ctranslate2.Translator(str(place), compute_type=precision, intra_threads=1))

    with tempfile.TemporaryDirectory() as inside, new_folder(out) as place:
        first = place if quantization == "float32" else Path(inside, "float32")
        comparison = made(first, "float32")
        _refuse_another_model(comparison)
        if quantization == "int8":
            comparison = made(place, "int8")
            _refuse_if(float(np.median(comparison.differences)), TOLERANCE_INT8)
        shutil.copyfile(folder / "tokenizer.json", place / "tokenizer.json")
    return comparison


def _refuse_another_model(comparison: Comparison) -> None:
    _refuse_if(max(comparison.differences + comparison.search_differences), TOLERANCE)
    if comparison.unexplained:
        raise UserError(
            f"the export went wrong, and was removed: CTranslate2 translates {comparison.unexplained} of {SENTENCES} "
            "sentences differently. This is a bug: please report it"
        )


def _refuse_if(difference: float, most: float) -> None:
    if not difference <= most:  # NaN too
        raise UserError(
            "the export went wrong, and was removed: CTranslate2 and heedful give a text log-probabilities that "
            f"differ by {100 * difference:.2g} %. This is a bug: please report it"
        )


def compare(loaded: LoadedModel, theirs: Any) -> Comparison:
    """Translate and score made-up sentences with both models."""
    judge = _Judge(loaded, theirs)
    with one_thread(), flushed_denormals(), torch.inference_mode():
        given, greedy, beam = judge.differences_of_given(), judge.search(1), judge.search(5)
    return Comparison(given, greedy.differences + beam.differences, greedy.same, beam.same, greedy.unexplained)


@dataclass(frozen=True)
class _Searched:
    """How many texts are the same, how many differ without a near tie, and how far their scores are from ours."""

    same: int
    unexplained: int
    differences: list[float]


class _Judge:
    """Both models, and sentences of random tokens."""

    def __init__(self, loaded: LoadedModel, theirs: Any) -> None:
        self.ours, self.theirs = loaded.network, theirs
        self.special = loaded.config.model.special_tokens
        self.names = token_names(loaded)
        self.ids = {name: number for number, name in enumerate(self.names)}
        self.forbidden = sorted(self.special.ids - {self.special.end})
        self.longest = min(LONGEST_TARGET, self.ours.longest_target(0) or LONGEST_TARGET)
        draw = random.Random(1)
        usable = sorted(set(range(len(self.names))) - self.special.ids)

        def sentences(longest: int) -> list[list[int]]:
            return [draw.choices(usable, k=draw.randint(1, longest)) for _ in range(SENTENCES)]

        self.sources = sentences(min(LONGEST_SOURCE, self.ours.max_length))
        self.targets = sentences(self.longest)

    def differences_of_given(self) -> list[float]:
        """The relative differences of the log-probabilities of random targets."""
        scored = self.theirs.score_batch(self._named(self.sources), self._named(self.targets))
        ours = self._log_probabilities(self.targets, [])
        return [_difference(sum(a), sum(b.log_probs)) for a, b in zip(ours, scored, strict=True)]

    def search(self, beam: int) -> _Searched:
        """Search with both models, without a length penalty, which each defines differently."""
        options = DecodingOptions(beam=beam, length_penalty=0.0, min_length=0, max_length=self.longest)
        requests = [Request(number, source) for number, source in enumerate(self.sources)]
        results = {each.index: each.hypotheses[0] for each in decode(self.ours, requests, options, SENTENCES)}
        ours = [results[number].tokens for number in range(SENTENCES)]
        answers = self.theirs.translate_batch(
            self._named(self.sources),
            beam_size=beam,
            length_penalty=0.0,
            max_decoding_length=self.longest,
            min_decoding_length=0,
            suppress_sequences=[[self.names[number]] for number in self.forbidden],
            return_scores=True,
            return_end_token=True,
        )
        ended = [[self.ids[name] for name in each.hypotheses[0]] for each in answers]
        theirs = [[token for token in each if token != self.special.end] for each in ended]
        own = self._log_probabilities(theirs, self.forbidden)
        differences = [
            _difference(sum(scores[: len(tokens)]), answer.scores[0])
            for scores, tokens, answer in zip(own, ended, answers, strict=True)
        ]
        same = sum(a == b for a, b in zip(ours, theirs, strict=True))
        return _Searched(same, self._unexplained(ours, theirs), differences)

    def _unexplained(self, ours: list[list[int]], theirs: list[list[int]]) -> int:
        """How many pairs of texts diverge at two tokens of which our model clearly prefers one."""
        scores = [self._log_probabilities(texts, self.forbidden) for texts in (ours, theirs)]
        count = 0
        for a, b, scores_a, scores_b in zip(ours, theirs, *scores, strict=True):
            if a != b:
                pairs = zip([*a, self.special.end], [*b, self.special.end], strict=False)
                parting = next(place for place, (x, y) in enumerate(pairs) if x != y)
                count += abs(scores_a[parting] - scores_b[parting]) > TIE
        return count

    def _log_probabilities(self, targets: list[list[int]], forbidden: list[int]) -> list[list[float]]:
        """By our model, those of each target's tokens and of its end, with some tokens ruled out."""
        source_rows, target_rows = (list(map(np.asarray, rows)) for rows in (self.sources, targets))
        batch = collate(source_rows, target_rows, self.special)
        logits_BTV = self.ours(batch.source_BS, batch.target_BT, batch.source_lengths_B)
        logits_BTV[..., forbidden] = -torch.inf
        scores_BT = logits_BTV.log_softmax(-1).gather(2, batch.labels_BT[..., None])[..., 0]
        return [row[: len(target) + 1].tolist() for row, target in zip(scores_BT, targets, strict=True)]

    def _named(self, rows: list[list[int]]) -> list[list[str]]:
        return [[self.names[token] for token in row] for row in rows]


def _difference(a: float, b: float) -> float:
    return abs(a - b) / max(1.0, abs(a))
