"""Where the time of a decoding step goes, part by part, beside CTranslate2's whole step; on one thread, beam 5."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import results
from benchmarks.speed.contender import BEAM, MEAN_LENGTH, Contender, Setup
from benchmarks.speed.corpus import WORK, Corpus, load_corpus
from benchmarks.speed.limits import memory_bandwidth, name_of
from benchmarks.speed.measuring import interleaved
from benchmarks.speed.random_model import NEVER
from benchmarks.speed.scaling import build, median_seconds
from benchmarks.speed.sizes import BASE, QUICK, SMALL, Size
from heedful.decoding import DecodingOptions, Request, decode
from heedful.decoding.token_scores import TokenScores, top_tokens
from heedful.interop.ctranslate2_export import export_folder
from heedful.layers.attention import Scoring
from heedful.layers.int8_linear import with_int8_weights
from heedful.machine import flushed_denormals, one_thread
from heedful.model_folder import ModelConfig, load_model_folder, model_card, save_model_folder
from heedful.models.decoding_state import DecodingState
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.special_tokens import END

COMMAND = "heedful bench decode_parts"
BATCHES = (1, 8, 64)
# Source tokens; target tokens of a short and of a long run, whose difference has steps and nothing else.
SOURCE, SHORT, LONG = 15, 8, 24
# The position at which the parts are measured one by one.
POSITION = (SHORT + LONG) // 2
# How many of the rows go on from another row than their own, as seen in translation.
MOVED = 0.4


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
            rows += _compare(size, (model, rounded), contenders, batch, bandwidth, 1 if quick else 2)
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
    for precision in ("int8", "float32"):
        arguments = {"model": str(out), "inter_threads": 1, "intra_threads": 1, "precision": precision}
        found[precision] = Contender(Setup("ctranslate2_translation", "ctranslate2", 1, arguments, 64), MEAN_LENGTH)
        found[precision].start()
    return found


def _compare(
    size: Size,
    models: tuple[EncoderDecoder, EncoderDecoder],
    contenders: dict[str, Contender],
    batch: int,
    bandwidth: float,
    rounds: int,
) -> list[dict[str, Any]]:
    """The model in fp32 and in int8, and CTranslate2 with the same weights."""
    model, rounded = models
    started = time.monotonic()
    draw = np.random.default_rng(1)
    sources = [draw.integers(3, model.output.out_features, SOURCE).tolist() for _ in range(batch)]
    measures: dict[str, Callable[[], float]] = {
        "heedful, whole step": lambda: _step_of_heedful(model, sources),
        "heedful int8, whole step": lambda: _step_of_heedful(rounded, sources),
    }
    for precision, contender in contenders.items():
        measures[f"CTranslate2 {precision}, whole step"] = lambda c=contender: _step_of_ctranslate2(c, sources)  # type: ignore[misc]
    whole = {name: each.median for name, each in interleaved(measures, rounds).items()}
    with one_thread(), torch.inference_mode():
        parts = {
            name: 1e3 * median_seconds(work, 6 * rounds)
            for name, work in parts_of_a_step(model, amid(model, batch)).items()
        }
        in_int8 = 1e3 * median_seconds(parts_of_a_step(rounded, amid(rounded, batch))["matrix products"], 6 * rounds)
    parts["Python, search and all else"] = whole["heedful, whole step"] - sum(parts.values())
    parts["matrix products, in int8"] = in_int8
    # The weights that a step reads; their bytes are the least that a step of one sentence can do with.
    weights = sum(each.weight.numel() for each in _linears(model))
    rows = []
    for name, value in {**parts, **whole}.items():
        row = results.row(
            f"{size.name}, batch {batch}: {name}", round(value, 3), "ms", "-", time.monotonic() - started, COMMAND
        )
        details: dict[str, Any] = {"size": size.name, "batch": batch, "part": name}
        if name.endswith("whole step"):
            width = 1 if "int8" in name else 4
            details["bandwidth_share"] = round(100 * weights * width / (value * 1e-3) / 1e9 / bandwidth, 1)
        rows.append(row | details)
    return rows


def _step_of_heedful(model: EncoderDecoder, sources: list[list[int]]) -> float:
    """Milliseconds of a step, as the difference of two runs."""
    requests = [Request(number, source) for number, source in enumerate(sources)]

    def run(length: int) -> float:
        options = DecodingOptions(beam=BEAM, length_penalty=0.0, min_length=length, max_length=length)
        started = time.perf_counter()
        with one_thread(), flushed_denormals():
            found = list(decode(model, requests, options, len(requests)))
        assert all(len(each.hypotheses[0].tokens) == length for each in found)
        return time.perf_counter() - started

    return 1e3 * (run(LONG) - run(SHORT)) / (LONG - SHORT)


def _step_of_ctranslate2(contender: Contender, sources: list[list[int]]) -> float:
    def run(length: int) -> float:
        contender.lengths = length, length
        took = contender.seconds(sources)
        assert all(len(each) == length for each in contender.outputs)
        return took

    return 1e3 * (run(LONG) - run(SHORT)) / (LONG - SHORT)


def _linears(model: EncoderDecoder) -> list[Any]:
    """The layers with the matrix products of a step, in their order; those of the source's keys have done theirs."""
    found: list[Any] = []
    for block in model.decoder_blocks:
        found += [block.attention.query_key_value_projection, block.attention.output_projection]
        found += [block.cross_attention.query_projection, block.cross_attention.output_projection]
        found += [block.feed_forward.inner_projection, block.feed_forward.output_projection]
    return [*found, model.output]


def amid(model: EncoderDecoder, batch: int) -> DecodingState:
    """What decoding holds amid so many sentences, with room for another step."""
    prefilled = model.prefill(torch.full((batch, SOURCE + 1), 3), torch.full((batch,), SOURCE + 1))
    state = model.new_state(batch, BEAM, SOURCE + 1, LONG + 1)
    state.insert(list(range(batch)), prefilled, list(range(batch)))
    parents_R = _parents(batch)
    for _ in range(POSITION):
        state.begin_step()
        state.end_step()
        state.reorder(parents_R)
    state.cache.make_room(state.cache.used + BEAM)
    return state


def _parents(batch: int) -> Tensor:
    parents = np.arange(batch * BEAM)
    moved = np.random.default_rng(1).random(len(parents)) < MOVED
    parents[moved] = parents[moved] // BEAM * BEAM
    return torch.from_numpy(parents)


def parts_of_a_step(model: EncoderDecoder, state: DecodingState) -> dict[str, Callable[[], Any]]:
    """The work of one step, one kind after the other, on tensors of the sizes that it has; the state stays."""
    batch = state.num_sentences
    rows, parents_R = batch * BEAM, _parents(batch)
    paths_NQS = state.cache.paths_NQS.clone()
    view = state.begin_step()
    state.cache.paths_NQS.copy_(paths_NQS)
    inputs = {each: torch.randn(rows, each.in_features) for each in _linears(model)}
    hidden_RD, logits_RV = torch.randn(rows, model.config.width), torch.randn(rows, model.output.out_features)
    heads, head = model.decoder_blocks[0].attention.num_heads, model.decoder_blocks[0].attention.key_width
    query = torch.randn(batch, heads, BEAM, head)
    tokens_R1 = torch.full((rows, 1), 3)
    scoring = Scoring(head**-0.5)

    def products() -> None:
        for layer, x in inputs.items():
            layer(x)

    def attention() -> None:
        for block, cache, key, value in zip(model.decoder_blocks, view.caches, view.keys, view.values, strict=True):
            block.attention.attend(query, cache.key_NHSK, cache.value_NHSV, cache.mask_N1QS, False, scoring, 0.0)
            block.cross_attention.attend(query, key, value, view.source_mask, False, scoring, 0.0)

    def cache() -> None:
        caches = state.begin_step().caches
        for each in caches:
            each.append(query, query)
        state.reorder(parents_R)
        state.cache.paths_NQS.copy_(paths_NQS)  # as before, for the next time

    def norms() -> None:
        model.target_embedding(tokens_R1, view.positions_R[:, None])
        for block in model.decoder_blocks:
            for residual in (block.attention_residual, block.cross_residual, block.feed_forward_residual):
                residual(hidden_RD, _same)
            block.feed_forward.activation(inputs[block.feed_forward.output_projection])

    def scores() -> None:
        found = TokenScores(logits_RV, np.arange(rows))
        found.log_probabilities(top_tokens(found.logits_AV, BEAM))

    return {
        "matrix products": products,
        "attention": attention,
        "cache: append and reorder": cache,
        "norms, residuals, activations, embedding": norms,
        "softmax and top-k": scores,
    }


def _same(x: Tensor) -> Tensor:
    return x
