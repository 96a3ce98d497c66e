"""Batches of fixed or variable length, their size, and the length of sequences: padding, speed, loss at equal time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.claims.evidence import Chart, Evidence, Verdict, clearly_below, mean, number, series, weighed
from heedful.claims.learning.course import Course, learn
from heedful.claims.learning.little_language import Sentence, batch_of, draw_sentences
from heedful.claims.learning.text_trials import TextTrial, build, learn_text, small_config
from heedful.claims.learning.translators import RATE, translation_loss, translation_scores, translator_config
from heedful.claims.workbench import Workbench
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.prepared.batches import BucketedBatches

WAYS = ("as they come", "bucketed by length")
MOST_CLAUSES, CORPUS = 6, 4000


def padding_share(lengths: Sequence[tuple[int, int]], batches: Sequence[Sequence[int]]) -> float:
    """The share of a corpus's batches that is padding; a batch is as long as its longest source and target."""
    real = sum(sum(lengths[index]) for batch in batches for index in batch)
    all_of_it = sum(
        len(batch) * (max(lengths[index][0] for index in batch) + max(lengths[index][1] for index in batch))
        for batch in batches
    )
    return 1 - real / all_of_it


def lengths_of(sentences: Sequence[Sentence]) -> list[tuple[int, int]]:
    """The lengths of sources and targets, with their end tokens."""
    return [(len(each.source) + 1, len(each.target) + 1) for each in sentences]


def batches_of(way: str, sentences: Sequence[Sentence], tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """An epoch of batches of about this many tokens: in random order, or bucketed by length."""
    lengths = np.array(lengths_of(sentences), np.int32)
    if way == "bucketed by length":
        bucketed = BucketedBatches(lengths[:, 0], lengths[:, 1], tokens, seed)
        return [[int(index) for index in batch] for batch in bucketed.epoch(epoch)]
    order = np.random.default_rng((seed, epoch)).permutation(len(sentences))
    rows = max(1, tokens // int(lengths.sum(1).mean()))
    return [[int(index) for index in order[start : start + rows]] for start in range(0, len(order), rows)]


def run(way: str, tokens: int, seed: int, seconds: float) -> dict[str, Any]:
    """Train a translator for some seconds: real tokens per second, its loss at the end, and its steps."""
    sentences = draw_sentences(CORPUS, (seed, 7), MOST_CLAUSES)
    torch.manual_seed(seed)
    model = EncoderDecoder(translator_config())
    plan = [batch for epoch in range(60) for batch in batches_of(way, sentences, tokens, seed, epoch)]
    read: list[int] = []

    def loss(step: int) -> Tensor:
        chosen = [sentences[index] for index in plan[step % len(plan)]]
        read.append(sum(len(each.source) + len(each.target) + 2 for each in chosen))
        return translation_loss(model, batch_of(chosen))

    learned = learn(model, loss, Course(100_000, RATE, seconds=seconds))
    unseen = batch_of(draw_sentences(150, (0, 7), MOST_CLAUSES))
    return {
        "speed": sum(read[: len(learned.seconds)]) / learned.seconds[-1],
        "loss": translation_scores(model, unseen)[0],
        "steps": len(learned.seconds),
    }


def judge(
    padding: dict[str, float], speed: dict[str, list[float]], loss: dict[str, list[float]]
) -> tuple[Verdict, str]:
    """Two parts: bucketing is faster, and so learns more in the same time; that it has less padding must be so."""
    plain, bucketed = WAYS
    words = (
        f"padding is {padding[plain]:.0%} of batches as they come, and {padding[bucketed]:.0%} of those bucketed by "
        f"length; speed {mean(speed[plain]):,.0f} and {mean(speed[bucketed]):,.0f} real tokens per second; the loss "
        f"after the same time {mean(loss[plain]):.3f} and {mean(loss[bucketed]):.3f}"
    )
    return weighed(
        words,
        {
            "bucketed batches are faster": clearly_below(speed[plain], speed[bucketed]),
            "they learn more in the same time": clearly_below(loss[bucketed], loss[plain]),
        },
    )


def measure(bench: Workbench) -> Evidence:
    """Translators with both kinds of batches and several sizes, and models of text with several lengths."""
    seconds = bench.choose(4.0, 10.0)
    sentences = draw_sentences(CORPUS, (1, 7), MOST_CLAUSES)
    lengths = lengths_of(sentences)
    padding = {way: padding_share(lengths, batches_of(way, sentences, 1200, 1, 0)) for way in WAYS}
    runs = {way: [_kept(bench, way, 1200, seed, seconds) for seed in bench.seeds] for way in WAYS}
    speed = {way: [each["speed"] for each in found] for way, found in runs.items()}
    loss = {way: [each["loss"] for each in found] for way, found in runs.items()}
    verdict, words = judge(padding, speed, loss)
    sizes = bench.choose((300, 4800), (300, 1200, 4800, 19200))
    by_size = [[_kept(bench, WAYS[1], size, seed, seconds) for size in sizes] for seed in bench.seeds]
    text_lengths = (16, 64, 256)
    text = [_text_speed(bench, length) for length in text_lengths]
    return Evidence(
        f"{CORPUS:,} sentences of a little language, 6 to {max(a for a, _ in lengths)} words; 2+2-layer "
        f"translators, batches of 1,200 tokens, {seconds:g} seconds each at a rate of {RATE:g}; a 2-layer model of "
        f"characters with 1,024 characters per step in rows of {', '.join(map(str, text_lengths))}",
        verdict,
        words,
        (
            *(number(f"padding, {way}", [share]) for way, share in padding.items()),
            *(number(f"speed, {way}", each, "real tokens/s") for way, each in speed.items()),
            *(number(f"held-out loss after {seconds:g} s, {way}", each, "nats/word") for way, each in loss.items()),
            *(
                number(f"speed, rows of {length} characters", [each], "characters/s")
                for length, each in zip(text_lengths, text, strict=True)
            ),
        ),
        (
            Chart(
                "Speed against the size of a batch",
                "tokens per batch",
                "real tokens/s",
                (series(WAYS[1], sizes, [[each["speed"] for each in row] for row in by_size]),),
                x_log=True,
            ),
            Chart(
                "Loss after the same time",
                "tokens per batch",
                "nats per word",
                (series(WAYS[1], sizes, [[each["loss"] for each in row] for row in by_size]),),
                x_log=True,
                y_log=True,
            ),
        ),
    )


def _kept(bench: Workbench, way: str, tokens: int, seed: int, seconds: float) -> dict[str, Any]:
    def make() -> dict[str, Any]:
        bench.tell(f"batches {way} of {tokens:,} tokens, seed {seed}")
        return run(way, tokens, seed, seconds)

    return bench.own.value("batches", [way, tokens, seed, seconds], make)


def _text_speed(bench: Workbench, length: int) -> float:
    """Characters per second of training steps with as many characters, in rows of a length."""

    def make() -> float:
        bench.tell(f"text in rows of {length}")
        steps, rows = 25, 1024 // length
        trial = TextTrial(small_config(length=length), 1, steps, length=length, rows=rows)
        seconds = learn_text(build(trial), trial).seconds
        first = len(seconds) // 5  # the steps before it warm up
        return (len(seconds) - 1 - first) * rows * length / (seconds[-1] - seconds[first])

    return bench.own.value("length", length, make)
