"""Where the time of a decoding step goes, part by part, beside CTranslate2's whole step; on one thread, beam 5."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import results
from benchmarks.speed.contender import BEAM, MEAN_LENGTH, Contender, Setup
from benchmarks.speed.corpus import WORK, Corpus, load_corpus
from benchmarks.speed.limits import memory_bandwidth, name_of
from benchmarks.speed.measuring import interleaved
from benchmarks.speed.random_model import NEVER
from benchmarks.speed.scaling import build
from benchmarks.speed.sizes import BASE, QUICK, SMALL, Size
from benchmarks.speed.step_clock import PARTS, REST, WHOLE, clocked, decoder_linears
from heedful.decoding import DecodingOptions, Request, decode
from heedful.interop.ctranslate2_export import export_folder
from heedful.layers.int8_linear import with_int8_weights
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.model_folder import ModelConfig, load_model_folder, model_card, save_model_folder
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.text.special_tokens import END

COMMAND = "heedful bench decode_parts"
BATCHES = (1, 8, 64)
# Source tokens; target tokens. The steps from the short number to the long one count.
SOURCE, SHORT, LONG = 15, 8, 24


def main(quick: bool) -> None:
    """Measure and write."""
    corpus = load_corpus()
    rows: list[dict[str, Any]] = []
    bandwidth = memory_bandwidth(1)
    for size in [QUICK] if quick else [SMALL, BASE]:
        folder, model = _endless(size, corpus)
        rounded = load_model_folder(folder).network
        with_int8_weights(rounded)
        contenders = _ctranslate2(folder)
        for batch in BATCHES[:2] if quick else BATCHES:
            rows += _compare(size, {"fp32": model, "int8": rounded}, contenders, batch, bandwidth, 1 if quick else 3)
        for contender in contenders.values():
            contender.stop()
    results.write(name_of("decode_parts", quick), rows)


def _endless(size: Size, corpus: Corpus) -> tuple[Path, EncoderDecoder]:
    """A model that never ends a translation by itself, and its folder."""
    sized = replace(size, vocabulary=corpus.tokenizer.vocabulary_size)
    config = replace(build(sized).config, output_bias=True)
    model = EncoderDecoder(config).eval()
    with torch.no_grad():
        model.output.bias[END] = NEVER
    folder = WORK / f"endless-{size.width}"
    card = model_card(folder.name, "Never ends.", "heedful bench", config.summary(), {})
    save_model_folder(folder, model, corpus.tokenizer, ModelConfig("encoder_decoder", "translation", config), card)
    return folder, model


def _ctranslate2(folder: Path) -> dict[str, Contender]:
    found = {}
    out = WORK / f"{folder.name}-ctranslate2"
    shutil.rmtree(out, ignore_errors=True)
    export_folder(folder, out)
    for precision, theirs in {"fp32": "float32", "int8": "int8"}.items():
        arguments = {"model": str(out), "inter_threads": 1, "intra_threads": 1, "precision": theirs}
        found[precision] = Contender(Setup("ctranslate2_translation", "ctranslate2", 1, arguments, 64), MEAN_LENGTH)
        found[precision].start()
    return found


def _compare(
    size: Size,
    models: dict[str, EncoderDecoder],
    contenders: dict[str, Contender],
    batch: int,
    bandwidth: float,
    rounds: int,
) -> list[dict[str, Any]]:
    """The model in either precision, part by part, and CTranslate2 with the same weights."""
    started = time.monotonic()
    draw = np.random.default_rng(1)
    sources = [draw.integers(3, models["fp32"].output.out_features, SOURCE).tolist() for _ in range(batch)]
    steps: dict[str, list[dict[str, float]]] = {precision: [] for precision in models}
    measures: dict[str, Callable[[], float]] = {}
    for precision, model in models.items():
        measures[precision] = partial(_step_of_heedful, model, sources, steps[precision])
        measures[f"CTranslate2, {precision}"] = partial(_step_of_ctranslate2, contenders[precision], sources)
    whole = interleaved(measures, rounds)
    # The weights that a step reads; their bytes are the least that a step of one sentence can do with.
    weights = sum(each.weight.numel() for each in decoder_linears(models["fp32"]))
    rows = []
    for precision, taken in steps.items():
        # All parts of one and the same run, the one whose step took neither longest nor shortest.
        parts = sorted(taken[1:], key=lambda each: each[WHOLE])[rounds // 2]
        named = {name: parts[name] for name in (*PARTS, REST)}
        named["heedful, whole step"] = parts[WHOLE]
        named["CTranslate2, whole step"] = whole[f"CTranslate2, {precision}"].median
        for name, value in named.items():
            measure = f"{size.name}, {precision}, batch {batch}: {name}"
            row = results.row(measure, round(value, 3), "ms", "-", time.monotonic() - started, COMMAND)
            details: dict[str, Any] = {"size": size.name, "batch": batch, "precision": precision, "part": name}
            if name.endswith(WHOLE):
                size_of_weights = weights * (1 if precision == "int8" else 4)
                details["bandwidth_share"] = round(100 * size_of_weights / (value * 1e-3) / 1e9 / bandwidth, 1)
            rows.append(row | details)
    return rows


def _step_of_heedful(model: EncoderDecoder, sources: list[list[int]], taken: list[dict[str, float]]) -> float:
    """Milliseconds of a step; its parts are kept."""
    requests = [Request(number, source) for number, source in enumerate(sources)]
    options = DecodingOptions(beam=BEAM, length_penalty=0.0, min_length=LONG, max_length=LONG)
    with one_thread(), flushed_denormals(), clocked(model, skipped=SHORT) as clock:
        found = list(decode(model, requests, options, len(requests)))
    assert all(len(each.hypotheses[0].tokens) == LONG for each in found)
    taken.append(clock.milliseconds())
    return taken[-1][WHOLE]


def _step_of_ctranslate2(contender: Contender, sources: list[list[int]]) -> float:
    """Milliseconds of a step, as the difference of two runs."""

    def run(length: int) -> float:
        contender.lengths = length, length
        took = contender.seconds(sources)
        assert all(len(each) == length for each in contender.outputs)
        return took

    return 1e3 * (run(LONG) - run(SHORT)) / (LONG - SHORT)
