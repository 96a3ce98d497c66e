"""How cost grows with the length of sequences and with the number of sentences at a time, on one thread."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import results
from benchmarks.speed.limits import name_of
from benchmarks.speed.sizes import QUICK, SMALL, TINY, Size
from heedful.core.model import CoreModel
from heedful.decoding import DecodingOptions, Request, decode
from heedful.layers.attention import Scoring, attend_explicit, attend_fused
from heedful.machine.devices import one_thread
from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.tasks.translation.task import collate, translation_loss

COMMAND = "heedful bench scaling"
LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192)
BATCHES = (1, 4, 16, 64, 256)
# Written out, attention has a matrix of all pairs: beyond this it would be measured against the page file.
LONGEST_EXPLICIT = 2048
# Tokens on either side of a training step; the longest sequence alone has as many.
TOKENS = 8192
# The length of the sentences of batches.
SENTENCE = 15
# Steps before and after a length that are measured for it.
NEAR = 8


def main(quick: bool) -> None:
    """Measure and write."""
    lengths, batches = (LENGTHS[:2], BATCHES[:2]) if quick else (LENGTHS, BATCHES)
    small, tiny, tokens = (QUICK, QUICK, 256) if quick else (SMALL, TINY, TOKENS)
    rows: list[dict[str, Any]] = []
    parts = (
        ("attention, forward and backward", "length", attention(lengths), "ms"),
        (f"training step, {tokens} tokens a side, {tiny.name}", "length", training(tiny, lengths, tokens), "s"),
        (f"decoding step, 1 sentence, {small.name}", "length", stepping(small, lengths), "ms"),
        (f"training, sentences of {SENTENCE}, {small.name}", "batch", by_batch(small, batches), "target tokens/s"),
        (f"decoding, beam 5, {small.name}", "batch", decoding(small, batches), "sentences/s"),
    )
    with one_thread():
        for what, axis, figures, unit in parts:
            started = time.monotonic()
            for series, x, value in figures:
                measure = f"{what}: {series}, {axis} {x}"
                row = results.row(measure, round(value, 3), unit, "-", time.monotonic() - started, COMMAND)
                rows.append(row | {"what": what, "series": series, "axis": axis, "x": x})
                print(measure, round(value, 3), unit, flush=True)
    results.write(name_of("scaling", quick), rows)


Figures = Iterator[tuple[str, int, float]]


def build(size: Size) -> EncoderDecoder:
    """A model of that size with random weights."""
    torch.manual_seed(1)
    stack = StackConfig(
        num_layers=size.layers,
        attention=AttentionConfig(num_heads=size.heads),
        feed_forward=FeedForwardConfig(inner_width=size.inner),
    )
    return EncoderDecoder(EncoderDecoderConfig(size.vocabulary, size.width, encoder=stack, decoder=stack))


def median_seconds(work: Callable[[], Any], times: int) -> float:
    """The median of so many calls after one that warms up; one call if it takes long."""
    started = time.perf_counter()
    work()
    first = time.perf_counter() - started
    if first > 5:
        return first
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return float(np.median(taken))


def attention(lengths: tuple[int, ...]) -> Figures:
    """8 heads of 64, one sequence, causal, in milliseconds: the kernel, and the same written out."""
    scoring = Scoring(0.125)
    for length in lengths:
        query, key, value = (torch.randn(1, 8, length, 64, requires_grad=True) for _ in range(3))
        for series, attend in (("fused", attend_fused), ("written out", attend_explicit)):
            if series == "fused" or length <= LONGEST_EXPLICIT:

                def once(attend: Any = attend, q: Any = query, k: Any = key, v: Any = value) -> None:
                    torch.autograd.grad(attend(q, k, v, None, True, scoring, 0.0).sum(), (q, k, v))

                yield series, length, 1e3 * median_seconds(once, 3)


def training(size: Size, lengths: tuple[int, ...], tokens: int) -> Figures:
    """Seconds of forward and backward over as many tokens, in sequences of each length."""
    model = build(size).train()
    for length in lengths:
        yield "heedful", length, median_seconds(_gradients(model, max(1, tokens // length), length - 1), 1)


def by_batch(size: Size, batches: tuple[int, ...]) -> Figures:
    """Target tokens a second of forward and backward."""
    model = build(size).train()
    for batch in batches:
        yield "heedful", batch, batch * (SENTENCE + 1) / median_seconds(_gradients(model, batch, SENTENCE), 3)


def _gradients(model: EncoderDecoder, sentences: int, length: int) -> Callable[[], Any]:
    draw = np.random.default_rng(1)
    rows = [draw.integers(3, model.output.out_features, length) for _ in range(sentences)]
    batch, parameters = collate(rows, rows), list(model.parameters())
    return lambda: torch.autograd.grad(translation_loss(model, batch, 0.1)[0], parameters)


def stepping(size: Size, lengths: tuple[int, ...]) -> Figures:
    """Milliseconds of one step of 5 beams where the text has so many tokens, all in one text."""
    most = lengths[-1] + NEAR
    model = engine_model(size, most + 1)
    options = DecodingOptions(beam=5, length_penalty=0.0, min_length=most, max_length=most)
    scheduler = model.new_scheduler(options, 1)
    # Who watches gets one step at a time.
    scheduler.add([Request(0, [3] * SENTENCE)], lambda progress: True)
    taken = []
    while not scheduler.idle:
        started = time.perf_counter()
        scheduler.step()
        taken.append(1e3 * (time.perf_counter() - started))
    for length in lengths:
        yield "heedful", length, float(np.median(taken[length - NEAR : length + NEAR]))


def engine_model(size: Size, longest: int) -> CoreModel:
    """A model of that size with random weights, in the engine, on one thread."""
    model = build(size).eval()
    with tempfile.TemporaryDirectory() as name:
        save_model_folder(Path(name), model, None, ModelConfig("encoder_decoder", "translation", model.config), "")
        found = CoreModel(Path(name), "encoder_decoder", model.config, int8=False, max_length=longest)
    found.threads = 1
    return found


def decoding(size: Size, batches: tuple[int, ...]) -> Figures:
    """Sentences a second, each with as many target tokens as source tokens."""
    model = engine_model(size, SENTENCE + 1)
    draw = np.random.default_rng(1)
    options = DecodingOptions(beam=5, length_penalty=0.0, min_length=SENTENCE, max_length=SENTENCE)
    for batch in batches:
        count = min(256, max(2 * batch, 16))
        requests = [Request(i, draw.integers(3, size.vocabulary, SENTENCE).tolist()) for i in range(count)]

        def once(requests: Any = requests, batch: int = batch) -> None:
            assert len(list(decode(model, requests, options, batch))) == len(requests)

        yield "heedful", batch, count / median_seconds(once, 3)
