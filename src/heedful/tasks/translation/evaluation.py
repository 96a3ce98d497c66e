"""How good a model's translations of a test set are, and how fast they come."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import sacrebleu

from heedful.tasks.translation.lines import LineSettings, cached_translator, translate_lines


@dataclass(frozen=True)
class Evaluation:
    """Scores of a test set; the signatures say exactly how BLEU and chrF were computed."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    perplexity: float
    sentences: int
    seconds: float
    translations: list[str]


def evaluate_translation(
    settings: LineSettings,
    workers: int,
    sources: list[str],
    references: list[str],
    remark: Callable[[int, str], None],
) -> Evaluation:
    """Translate the sources and compare with the references; `remark` is told of lines with something odd."""
    scores = cached_translator(settings.model, settings.device, settings.precision, settings.shortlist).score(
        sources, references
    )
    translations: list[str] = []
    # Only these end a line for the reader of the stream, and neither can be in a line of a file.
    stream = io.BytesIO("".join(line.replace("\n", " ") + "\n" for line in sources).encode("utf-8"))
    started = time.monotonic()
    translate_lines(settings, workers, stream.read, lambda lines, _: translations.extend(lines), remark)
    seconds = time.monotonic() - started
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    bleu_score = bleu.corpus_score(translations, [references]).score
    chrf_score = chrf.corpus_score(translations, [references]).score
    tokens = sum(len(each.token_scores) for each in scores)
    perplexity = math.exp(-sum(each.log_probability for each in scores) / tokens)
    return Evaluation(
        bleu_score,
        str(bleu.get_signature()),
        chrf_score,
        str(chrf.get_signature()),
        perplexity,
        len(sources),
        seconds,
        translations,
    )
