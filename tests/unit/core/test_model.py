"""From a folder to the engine: weights of all types, settings that cannot be, and what is no text."""

import copy
import ctypes
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import heedful
from core_folders import both, core_model, family_settings, save, texts
from heedful.core.interface import ModelSettings, SearchSettings, StackSettings, engine, last_error
from heedful.core.scheduler import CoreScheduler
from heedful.core.sequences import encode, score_targets
from heedful.core.settings import model_settings
from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode
from heedful.errors import UserError
from heedful.tasks.encoding.seam import encoder_computation
from heedful.tasks.translation.seam import pair_computation
from heedful.text.framing import Framed
from mutations import change, little_time_and_memory

FAMILIES = ["encoder_decoder", "decoder_only", "encoder_only"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("models")
    return {each: save(place / each, each, family_settings(each)) for each in FAMILIES}


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_a_model_of_the_engine_is_not_copied(folders: dict[str, Path], copied: Any) -> None:
    with pytest.raises(UserError, match=r"call heedful\.load again"):
        copied(core_model(folders["encoder_decoder"]))


@pytest.mark.parametrize("positions", ["learned", "relative_buckets"])
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_weights_of_other_types(tmp_path: Path, kind: torch.dtype, positions: str) -> None:
    folder = save(tmp_path, "encoder_decoder", family_settings("encoder_decoder", {"positions": positions}))
    tensors = load_file(folder / "model.safetensors")
    # Some are so small that half floats have fewer bits for them.
    tensors["encoder.0.feed_forward.inner_projection.weight"] *= 1e-5
    save_file({name: each.to(kind) for name, each in tensors.items()}, folder / "model.safetensors")
    pairs = list(zip(texts((3, 17), 1), texts((5, 11), 2), strict=True))
    found, expected = (pair_computation(model).token_scores(pairs) for model in both(folder))
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-5, atol=5e-5)


def test_types_may_be_mixed(tmp_path: Path) -> None:
    folder = save(tmp_path, "encoder_only", family_settings("encoder_only", {"head": "masked"}))
    tensors = load_file(folder / "model.safetensors")
    kinds = [torch.float16, torch.float32, torch.bfloat16, torch.float64]
    mixed = {name: tensors[name].to(kinds[place % 4]) for place, name in enumerate(sorted(tensors))}
    save_file(mixed, folder / "model.safetensors")
    rows = [Framed([1, *ids, 2], len(ids) + 2, False) for ids in texts((3, 17), 1)]
    with torch.inference_mode():
        found, expected = (encoder_computation(model).logits(rows, 2) for model in both(folder))
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-5, atol=5e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_it_says_of_itself_is_what_torch_says(folders: dict[str, Path], family: str) -> None:
    core, network = both(folders[family])
    assert core.num_parameters == sum(each.numel() for each in network.parameters())
    assert core.max_length == network.max_length and core.special_tokens == network.special_tokens
    if family != "encoder_only":
        for source in ([], [13], [13, 17, 19]):
            assert core.frame(source) == network.frame(source)
            assert core.longest_target(len(source)) == network.longest_target(len(source))


WRONG_FOLDERS = {
    "tied": ("encoder_decoder", {"tied_output": False}, {"model__tied_output": True}, "output.weight is not part"),
    "untied": ("decoder_only", {}, {"model__tied_output": False}, "output.weight is missing"),
    "shared": (
        "encoder_decoder", {"shared_embeddings": False}, {"model__shared_embeddings": True},
        "target_embedding.table.weight is not part",
    ),
    "not shared": ("encoder_decoder", {}, {"model__shared_embeddings": False}, "target_embedding.*is missing"),
    "longer": ("encoder_only", {"positions": "learned"}, {"model__max_length": 67}, "table has another shape"),
    "shorter": ("decoder_only", {"positions": "learned"}, {"model__max_length": 5}, "table has another shape"),
    "no longer learned": ("decoder_only", {"positions": "learned"}, {"model__positions": "alibi"}, "table is not part"),
    "never learned": ("decoder_only", {"positions": "alibi"}, {"model__positions": "learned"}, " positions.table is"),
    "no buckets": ("encoder_only", {}, {"model__positions": "relative_buckets"}, "table is not part"),
    "fewer buckets": (
        "encoder_only", {"positions": "relative_buckets"},
        {"model__positions": {"scheme": "relative_buckets", "num_buckets": 16, "max_distance": 17}},
        "positions.biases has another shape",
    ),
    "odd rotary heads": (
        "decoder_only", {"positions": "alibi", "stack": {"attention": {"key_width": 7}}},
        {"model__positions": "rotary"}, "rotary positions need an even key width, not 7",
    ),
    "bias": ("encoder_decoder", {}, {"model__output_bias": True}, "output.bias is missing"),
    "segments": ("encoder_only", {}, {"model__embedding__segments": 2}, " embedding.segments.weight is missing"),
    "as many segments as can be": ("encoder_only", {}, {"model__embedding__segments": 10**18}, "segments is 10"),
    "norm": ("encoder_only", {}, {"model__embedding__norm": True}, " embedding.norm.weight is missing"),
    "pre-norm": ("encoder_only", {}, {"model__stack__norm": "pre"}, " norm.weight is missing"),
    "rms": ("encoder_only", {}, {"model__stack__norm_kind": "rms"}, "norm.bias is not part"),
    "swiglu": ("encoder_only", {}, {"model__stack__feed_forward__activation": "swiglu"}, "has another shape"),
    "additive": ("encoder_only", {}, {"model__stack__attention__scoring": "additive"}, " blocks.0.*is missing"),
    "pooler": ("encoder_only", {"head": "none"}, {"model__pooler": True}, " pooler.0.weight is missing"),
    "convolution": ("encoder_only", {}, {"model__convolution": 3}, " neighbourhood.projection.weight is missing"),
    "wide convolution": ("encoder_only", {}, {"model__convolution": 2**31 + 1}, "convolution is 2147483649"),
    "head": ("encoder_only", {}, {"model__head": "tags", "model__num_labels": 3}, "output.weight is missing"),
    "more labels": (
        "encoder_only", {"head": "tags", "num_labels": 3}, {"model__num_labels": 5}, "there are 3 labels",
    ),
    **{
        f"{name} {value}": ("decoder_only", {}, {f"model__{name}": value}, "config.json")
        for name in (
            "vocabulary_size", "width", "stack__num_layers", "stack__attention__num_heads",
            "stack__attention__key_width", "stack__attention__value_width", "stack__feed_forward__inner_width",
        )
        for value in (-1, 7, 2**16 + 1, 2**24 + 1, 2**31, 2**63, 10**30)
    },
    **{
        f"max_length {value}": ("encoder_decoder", {}, {"model__max_length": value}, "config.json")
        for value in (0, -1, 2**24 + 1, 2**31, 2**63, 10**30)
    },
}  # fmt: skip


@pytest.mark.parametrize(("family", "before", "after", "message"), WRONG_FOLDERS.values(), ids=WRONG_FOLDERS)
def test_settings_that_the_weights_do_not_have(
    tmp_path: Path, family: str, before: dict, after: dict, message: str
) -> None:
    folder = save(tmp_path, family, family_settings(family, before))
    change(folder / "config.json", **after)
    with pytest.raises(UserError, match=message) as raised, little_time_and_memory():
        core_model(folder)
    assert "config.json" in str(raised.value) and "\n" not in str(raised.value)
    with pytest.raises(UserError):
        both(folder)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "relative_buckets", "none"])
@pytest.mark.parametrize("max_length", [2**24 + 1, 2**31, 2**63, 10**30])
def test_lengths_that_no_text_has(tmp_path: Path, positions: str, max_length: int) -> None:
    folder = save(tmp_path, "decoder_only", family_settings("decoder_only", {"positions": positions}))
    with pytest.raises(UserError, match="max_length is"), little_time_and_memory():
        core_model(folder, max_length=max_length)


STACK_FIELDS, MODEL_FIELDS = ([name for name, *_ in kind._fields_] for kind in (StackSettings, ModelSettings))
STRANGE = st.sampled_from([-(2**31), -1, 0, 1, 2, 7, 2**12, 2**12 + 1, 2**16, 2**20, 2**24, 2**24 + 1, 2**31 - 1])
FIELDS = [(None, name) for name in MODEL_FIELDS if name not in ("encoder", "decoder")]
FIELDS += [(stack, name) for stack in ("encoder", "decoder") for name in STACK_FIELDS]


@settings(max_examples=300)
@given(changes=st.lists(st.tuples(st.sampled_from(FIELDS), STRANGE), max_size=4))
def test_any_settings_make_a_model_or_are_refused(changes: list) -> None:
    from heedful.config import from_dict
    from heedful.settings.families import FAMILY_SETTINGS

    config = from_dict(FAMILY_SETTINGS["encoder_decoder"], family_settings("encoder_decoder"))
    whole = model_settings("encoder_decoder", config, 61, 67, int8=False)
    for (stack, name), value in changes:
        setattr(whole if stack is None else getattr(whole, stack), name, value)
    with little_time_and_memory():
        handle = ctypes.c_void_p(engine().heedful_model_new(whole))
        assert handle or last_error()
        if handle:  # nothing of it is there, so that it is not complete
            assert engine().heedful_model_finish(handle)
            options = SearchSettings(1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1)
            assert not engine().heedful_decoder_new(handle, options)
            engine().heedful_model_free(handle)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
@pytest.mark.parametrize("name", ["norm_epsilon", "embedding_norm_epsilon", "embedding_scale", "score_scale"])
def test_settings_that_are_not_numbers(value: float, name: str) -> None:
    from heedful.config import from_dict
    from heedful.settings.families import FAMILY_SETTINGS

    config = from_dict(FAMILY_SETTINGS["encoder_decoder"], family_settings("encoder_decoder"))
    whole = model_settings("encoder_decoder", config, 61, 67, int8=False)
    setattr(whole.decoder, name, value)
    handle = ctypes.c_void_p(engine().heedful_model_new(whole))
    refused = value != -1.0 if name.endswith("scale") else value != float("inf")
    assert bool(handle) != refused
    engine().heedful_model_free(handle)


@pytest.mark.parametrize("name", [name for name, *_ in SearchSettings._fields_])
@pytest.mark.parametrize("value", [-(2**31), -1, 2**31 - 1])
def test_options_out_of_range_are_refused(folders: dict[str, Path], name: str, value: int) -> None:
    options = SearchSettings(0.6, 1, 1, 1, 5, 3, 0, 0, 0, 0, 0, 2, 3)
    setattr(options, name, value)
    model = core_model(folders["encoder_decoder"])
    with little_time_and_memory():
        handle = ctypes.c_void_p(engine().heedful_decoder_new(model.handle, options))
    # These have no limits, or are yes or no.
    limits = {"length_penalty": (-1e10, 1e10), "temperature": (1e-9, 1e10), "repetition_penalty": (1e-9, 1e10)}
    limits |= dict.fromkeys(("min_length", "top_k", "no_repeat_ngram"), (0, 2**31))
    limits |= dict.fromkeys(("sampling", "keep_logits"), (-(2**31), 2**31))
    low, high = limits.get(name, (0, 0))
    assert bool(handle) == (low <= value < high)
    engine().heedful_decoder_free(handle)


def strange_requests() -> dict[str, tuple[Request, str]]:
    return {
        "token": (Request(3, [13, 31, 17]), "token 31 is not in the vocabulary"),
        "negative token": (Request(3, [13, -1]), "token -1 is not in the vocabulary"),
        "large token": (Request(3, [2**31]), "token 2147483648 is not in the vocabulary"),
        "token that wraps around": (Request(3, [2**32 + 13]), "token 4294967309 is not in the vocabulary"),
        "prefix": (Request(3, [13], [10**30]), "is not in the vocabulary"),
        "special": (Request(3, [13, 2]), "its source holds a special token"),
        "negative length": (Request(3, [13], max_length=-1), "more than the -1"),
        "prefix too long": (Request(3, [13], [17, 19], max_length=1), "the forced prefix has 2 tokens"),
    }


@pytest.mark.parametrize("family", ["encoder_decoder", "decoder_only"])
@pytest.mark.parametrize(("request_", "message"), strange_requests().values(), ids=strange_requests())
def test_strange_requests_are_refused_and_others_go_on(
    folders: dict[str, Path], family: str, request_: Request, message: str
) -> None:
    model = core_model(folders[family])
    scheduler = CoreScheduler(model, DecodingOptions(beam=2), 3)
    good = [Request(0, [13, 17], max_length=5), Request(1, [19], max_length=5)]
    scheduler.add(good[:1], lambda progress: True)
    scheduler.step()
    with pytest.raises(UserError, match=message):
        scheduler.add([good[1], request_])
    assert scheduler.num_waiting == 0
    scheduler.add(good[1:])
    found = {}
    while not scheduler.idle:
        found |= {each.index: each.hypotheses for each in scheduler.step()}
    assert found == {each.index: each.hypotheses for each in decode(model, good, DecodingOptions(beam=2), 3)}


def test_lengths_that_are_no_limit(tmp_path: Path) -> None:
    def ends_soon(model: Any) -> None:
        model.output.bias[2] = 5.0

    settings_ = family_settings("encoder_decoder", {"output_bias": True}, norm="pre")
    model = core_model(save(tmp_path, "encoder_decoder", settings_, change=ends_soon, output=1.0))
    found = [
        list(decode(model, [Request(0, [13, 17])], DecodingOptions(beam=1, max_length=length), 1))
        for length in (1000, 2**12, 2**16)
    ]
    assert found == found[:1] * 3 and found[0][0].hypotheses[0].finished


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 1025}, "beam is 1025, but must be a whole number from 1 to 1,024"),
        ({"beam": 2**32 + 1}, "beam is 4294967297"),
        ({"min_length": 2**32}, "min_length is 4294967296"),
        ({"nbest": 2**32 + 1, "sampling": SamplingOptions()}, "nbest is 4294967297"),
    ],
)
def test_options_that_do_not_fit(folders: dict[str, Path], options: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        CoreScheduler(core_model(folders["encoder_decoder"]), DecodingOptions(**options), 3)


@pytest.mark.parametrize("threads", [-1, 0, 1, 64, 65, 1000])
def test_any_number_of_threads(folders: dict[str, Path], threads: int) -> None:
    model = core_model(folders["encoder_decoder"], threads=threads)
    options = DecodingOptions(beam=2, max_length=3)
    requests = [Request(number, [13, 17 + number]) for number in range(7)]
    found = sorted(decode(model, requests, options, 5), key=lambda each: each.index)
    scores, _ = score_targets(model, [[13, 2]], [[17, 19]])
    model.threads = 1
    assert found == sorted(decode(model, requests, options, 5), key=lambda each: each.index)
    assert np.array_equal(scores, score_targets(model, [[13, 2]], [[17, 19]])[0])


STRANGE_TEXTS = {
    "token": ([[13, 31]], "token 31"),
    "negative": ([[13], [-1]], "token -1"),
    "large": ([[2**32 + 13]], "token 4294967309"),
    "nothing": ([[13], []], "a text has 0 tokens"),
    "too long": ([[13] * 62], "a text has 62 tokens, but the model takes from 1 to 61"),
}


@pytest.mark.parametrize(("rows", "message"), STRANGE_TEXTS.values(), ids=STRANGE_TEXTS)
def test_strange_texts_are_refused(folders: dict[str, Path], rows: list, message: str) -> None:
    encoder = core_model(folders["encoder_only"])
    with pytest.raises(UserError, match=message):
        encode(encoder, rows, None, pooling=0, head=False, width=18)
    decoder = core_model(folders["decoder_only"])
    firsts = [[13]] * len(rows)
    with pytest.raises(UserError, match=message):
        score_targets(decoder, firsts, rows)
    translator = core_model(folders["encoder_decoder"])
    if len(rows[0]) < 62:  # its positions extend
        with pytest.raises(UserError, match=message):
            score_targets(translator, rows, firsts)


def test_strange_segments_are_refused(tmp_path: Path) -> None:
    settings_ = family_settings("encoder_only", {"embedding": {"segments": 2}})
    model = core_model(save(tmp_path, "encoder_only", settings_))
    for segment in (2, -1, 2**40):
        with pytest.raises(UserError, match=f" {segment} "):
            encode(model, [[13, 17]], [[0, segment]], pooling=0, head=False, width=18)


def test_models_answer_what_they_can(folders: dict[str, Path]) -> None:
    with pytest.raises(UserError, match="the model has no decoder"):
        score_targets(core_model(folders["encoder_only"]), [[13]], [[13]])
    model = core_model(folders["encoder_only"])
    assert not engine().heedful_decoder_new(model.handle, SearchSettings(0.6, 1, 1, 1, 5, 3, 0, 0, 0, 0, 0, 2, 3))
    assert last_error() == "the model has no decoder"
    with pytest.raises(UserError, match="the model has no encoder"):
        encode(core_model(folders["decoder_only"]), [[13]], None, pooling=0, head=False, width=18)
    with pytest.raises(UserError, match="the model has no head"):
        encode(core_model(folders["encoder_only"]), [[13]], None, pooling=0, head=True, width=18)


@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
def test_what_overflows_is_said(tmp_path: Path, int8: bool) -> None:
    def overflow(model: Any) -> None:
        model.output.weight.copy_(3e38 * model.output.weight.sign())

    folder = save(
        tmp_path, "encoder_decoder", family_settings("encoder_decoder", {"tied_output": False}), change=overflow
    )
    model = core_model(folder, int8=int8, threads=2)
    requests = [Request(number, [13, 17]) for number in range(3)]
    for options in (DecodingOptions(), DecodingOptions(sampling=SamplingOptions())):
        for count in (1, 3):
            with pytest.raises(UserError, match="not numbers"):
                list(decode(model, requests[:count], options, 3))
    with little_time_and_memory(9.0, 20.0):  # and nothing of it is kept: each takes a megabyte
        for _ in range(101):
            with pytest.raises(UserError, match="not numbers"):
                score_targets(model, [[13, 2] * 307], [[17] * 307])


@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
@pytest.mark.parametrize("large", [1e25, 3e38])
def test_a_number_too_large_for_a_norm_is_said(tmp_path: Path, large: float, int8: bool) -> None:
    def enlarge(model: Any) -> None:
        model.decoder[0].feed_forward.inner_projection.bias[0] = large

    folder = save(tmp_path, "encoder_decoder", family_settings("encoder_decoder"), change=enlarge)
    with pytest.raises(UserError, match="not numbers"):
        score_targets(core_model(folder, int8=int8), [[13, 17]], [[17]])


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_after_a_fork_it_goes_on_in_both_processes(folders: dict[str, Path]) -> None:
    program = f"""
import os, sys
from pathlib import Path
sys.path[:0] = {sys.path!r}
from heedful.core.model import CoreModel
from heedful.core.scheduler import CoreScheduler
from heedful.decoding import DecodingOptions, Request, decode
from heedful.model_folder import check_model_folder
folder = Path({str(folders["encoder_decoder"])!r})
model = CoreModel(folder, "encoder_decoder", check_model_folder(folder).model, int8=False)
model.threads = 3
options = DecodingOptions(beam=3, max_length=11)
requests = [Request(n, [13, 17 + n]) for n in range(7)]
def run():
    return sorted(decode(model, requests, options, 5), key=lambda each: each.index)
expected = run()
for place in range(5):
    unfinished = CoreScheduler(model, options, 5)
    unfinished.add(requests, lambda progress: True)
    unfinished.step()
    child = os.fork()
    found = run()
    later = []
    while not unfinished.idle:
        later += unfinished.step()
    assert found == expected
    assert sorted(later, key=lambda each: each.index) == expected
    del unfinished
    if not child:
        sys.exit(0)  # with all that is done at the end of a program
    assert os.waitpid(child, 0)[1] == 0
print("both")
"""
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    assert (result.stdout, result.returncode) == ("both\n", 0), result.stderr


def test_a_folder_is_loaded_by_the_engine_that_is_asked_for(untrained_model: Path) -> None:
    by_core, by_torch = (heedful.load(untrained_model, engine=engine_) for engine_ in ("core", "torch"))
    assert type(by_core.model).__name__ == "CoreModel" and isinstance(by_torch.model, torch.nn.Module)
    assert type(heedful.load(untrained_model).model).__name__ == "CoreModel"
    with pytest.raises(UserError, match="engine is 'none': choose auto, core or torch"):
        heedful.load(untrained_model, engine="none")


@pytest.mark.parametrize("family", FAMILIES)
def test_several_threads_load_the_same_model(
    folders: dict[str, Path], family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Framed([1, *ids, 2], len(ids) + 2, False) for ids in texts((3, 17), 1)]

    def answers() -> list[Any]:
        model = core_model(folders[family], int8=True)
        if family == "encoder_only":
            return [each.tolist() for each in encoder_computation(model).pooled(rows, "mean", 2)]
        return [
            done.hypotheses
            for done in decode(model, [Request(0, [5, 7, 11])], DecodingOptions(beam=3, max_length=7), 3)
        ]

    before = answers()
    monkeypatch.setattr("heedful.core.model.LARGE_FILE", 0)
    monkeypatch.setattr("heedful.core.model.available_cores", lambda: 5)
    assert answers() == before


def test_of_several_bad_tensors_the_first_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save(tmp_path, "decoder_only", family_settings("decoder_only"))
    tensors = load_file(folder / "model.safetensors")
    for tensor in tensors.values():
        tensor.view(-1)[-1] = torch.nan
    save_file(tensors, folder / "model.safetensors")
    monkeypatch.setattr("heedful.core.model.LARGE_FILE", 0)
    monkeypatch.setattr("heedful.core.model.available_cores", lambda: 5)
    told = set()
    for _ in range(7):
        with pytest.raises(UserError, match="infinite or NaN") as raised:
            core_model(folder)
        told.add(str(raised.value))
    assert len(told) == 1
