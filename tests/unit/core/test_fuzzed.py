"""What fuzzing found stays mended: the inputs in core/fuzz/seeds, and calls that broke the engine."""

import ctypes
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from heedful.core.interface import CoreRequest, ModelSettings, SearchSettings, StackSettings, engine, last_error

ROOT = Path(__file__).parents[3]
FUZZ = ROOT / "core" / "fuzz"
VOCABULARY, WIDTH, INNER = 7, 4, 5
TENSORS = {
    "decoder.embedding": (VOCABULARY, WIDTH),
    "decoder.0.attention.query_key_value_projection.weight": (3 * WIDTH, WIDTH),
    "decoder.0.attention.output_projection.weight": (WIDTH, WIDTH),
    "decoder.0.attention_residual.norm.weight": (WIDTH,),
    "decoder.0.feed_forward.inner_projection.weight": (INNER, WIDTH),
    "decoder.0.feed_forward.output_projection.weight": (WIDTH, INNER),
    "decoder.0.feed_forward_residual.norm.weight": (WIDTH,),
    "output.weight": (VOCABULARY, WIDTH),
}


@pytest.fixture(scope="module")
def loader() -> ModuleType:
    spec = importlib.util.spec_from_file_location("loader", FUZZ / "loader.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["loader"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folders(loader: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("folders")
    loader.unpack(place)
    return place


@pytest.mark.parametrize("seed", sorted((FUZZ / "seeds" / "loader").iterdir()), ids=lambda path: path.name)
def test_damaged_folders_load_or_are_refused(loader: ModuleType, folders: Path, seed: Path) -> None:
    loader.check(seed.read_bytes(), folders)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++") or sys.platform != "linux", reason="g++ has the sanitizers")
def test_calls_that_broke_the_engine_no_longer_do(tmp_path: Path) -> None:
    program, files = tmp_path / "replay", [FUZZ / "interface.cpp", FUZZ / "replay.cpp"]
    compiling = [
        sys.executable,
        ROOT / "tools" / "compile_core.py",
        "g++",
        program,
        "-fsanitize=address,undefined",
        "--",
    ]
    subprocess.run([*compiling, *files], check=True)
    seeds = sorted((FUZZ / "seeds" / "interface").iterdir())
    result = subprocess.run([program, *seeds], capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stdout) == (0, f"{len(seeds)} inputs\n"), result.stderr


def settings(**changes: int) -> ModelSettings:
    stack = {"layers": 1, "heads": 1, "key_value_heads": 1, "key_width": WIDTH, "value_width": WIDTH} | changes
    values = {"inner_width": INNER, "rms_norm": 1, "norm_epsilon": 1e-5, "embedding_scale": 1, "score_scale": 1} | stack
    return ModelSettings(
        vocabulary=VOCABULARY, width=WIDTH, max_length=20, end=2, mask=-1, decoder=StackSettings(**values)
    )


def put(model: ctypes.c_void_p, name: str, numbers: np.ndarray, first: int = 0, last: int | None = None) -> int:
    shape, rows = (ctypes.c_int64 * numbers.ndim)(*numbers.shape), numbers[first:last]
    given = (model, name.encode(), 0, shape, numbers.ndim, first, rows.ctypes.data, rows.nbytes)
    return engine().heedful_model_put(*given)


def model_of(largest: np.float32 | None = None) -> ctypes.c_void_p:
    made, random = ctypes.c_void_p(engine().heedful_model_new(settings())), np.random.default_rng(3)
    for name, shape in TENSORS.items():
        numbers = random.standard_normal(shape, np.float32)
        assert not put(made, name, np.sign(numbers) * largest if largest and name == "output.weight" else numbers)
    assert not engine().heedful_model_finish(made)
    return made


@pytest.fixture
def model() -> Iterator[ctypes.c_void_p]:
    made = model_of()
    yield made
    engine().heedful_model_free(made)


def decoder_of(model: ctypes.c_void_p, **changes: float) -> ctypes.c_void_p:
    values = {
        "temperature": 1,
        "top_p": 1,
        "repetition_penalty": 1,
        "beam": 2,
        "nbest": 1,
        "threads": 1,
        "sentences": 4,
    }
    return ctypes.c_void_p(engine().heedful_decoder_new(model, SearchSettings(**(values | changes))))


def add(decoder: ctypes.c_void_p, count: int = 2, longest: int = 9) -> int:
    requests = [CoreRequest(index=i, first=3, longest=longest, seed=5, number=i) for i in range(max(count, 0))]
    return engine().heedful_decoder_add(decoder, (CoreRequest * len(requests))(*requests), count)


def test_a_window_that_no_text_fills_is_refused() -> None:
    assert not engine().heedful_model_new(settings(window=2**31 - 1))
    assert "the window is 2147483647" in last_error()


def test_a_number_of_requests_below_zero_is_refused(model: ctypes.c_void_p) -> None:
    decoder = decoder_of(model)
    assert add(decoder, -1)
    assert not add(decoder, 0)
    engine().heedful_decoder_free(decoder)


def steps_until_done(model: ctypes.c_void_p, first: int, **options: float) -> int:
    decoder, steps = decoder_of(model, beam=1, sampling=1, **options), 0
    assert not engine().heedful_decoder_add(decoder, (CoreRequest * 1)(CoreRequest(first=first, longest=19)), 1)
    while not steps or engine().heedful_decoder_running(decoder):
        assert not engine().heedful_decoder_step(decoder)
        steps += 1
    engine().heedful_decoder_free(decoder)
    return steps


@pytest.mark.parametrize("penalty", [1e308, -1e308])
def test_a_sample_ends_where_it_does_whatever_the_length_penalty(model: ctypes.c_void_p, penalty: float) -> None:
    steps = [steps_until_done(model, first) for first in range(VOCABULARY)]
    assert min(steps) < 20
    assert [steps_until_done(model, first, length_penalty=penalty) for first in range(VOCABULARY)] == steps


def test_a_decoder_that_has_failed_goes_no_further() -> None:
    model = model_of(largest=np.float32(3e38))  # finite, but its scores are not
    decoder = decoder_of(model, sampling=1)
    assert not add(decoder, longest=19)
    while not engine().heedful_decoder_step(decoder):
        assert engine().heedful_decoder_running(decoder)
    assert last_error() == "the model's scores are not numbers"
    for failed in (engine().heedful_decoder_step(decoder), add(decoder)):
        assert failed
        assert "has failed before" in last_error()
    assert not engine().heedful_decoder_cancel(decoder, 0)
    engine().heedful_decoder_free(decoder)
    engine().heedful_model_free(model)


def test_a_sample_without_a_token_to_draw_stays_unfinished(model: ctypes.c_void_p) -> None:
    decoder = decoder_of(model, sampling=1, no_repeat_ngram=1, min_length=19)
    assert not add(decoder, longest=19)
    while engine().heedful_decoder_running(decoder) or engine().heedful_decoder_waiting(decoder):
        assert not engine().heedful_decoder_step(decoder)
    index, sizes = ctypes.c_int64(), (ctypes.c_int32 * 3)()
    for _ in range(2):
        assert engine().heedful_decoder_done(decoder, ctypes.byref(index), sizes)
        heads, totals = (ctypes.c_int32 * (3 * sizes[0]))(), (ctypes.c_double * sizes[0])()
        tokens, scores = (ctypes.c_int32 * sizes[1])(), (ctypes.c_float * sizes[2])()
        engine().heedful_decoder_take(decoder, heads, totals, tokens, scores)
        assert not any(heads[2::3]) and sizes[1] > 0
    engine().heedful_decoder_free(decoder)


def test_a_tensor_that_was_refused_may_come_again() -> None:
    made = ctypes.c_void_p(engine().heedful_model_new(settings()))
    for name, shape in TENSORS.items():
        assert put(made, name, np.full(shape, np.nan, np.float32))
        assert not put(made, name, np.ones(shape, np.float32))
        assert put(made, name, np.ones(shape, np.float32))
    assert not engine().heedful_model_finish(made)
    assert not engine().heedful_model_finish(made)
    engine().heedful_model_free(made)


def test_rows_come_in_their_order() -> None:
    made, numbers = ctypes.c_void_p(engine().heedful_model_new(settings())), np.ones((VOCABULARY, WIDTH), np.float32)
    name = "decoder.embedding"
    assert not put(made, name, numbers, 0, 2)
    for first, last in ((0, 2), (3, 4), (1, VOCABULARY)):
        assert put(made, name, numbers, first, last) and "do not come in their order" in last_error()
    assert put(made, name, numbers, 2, 2) and "has 0 bytes" in last_error()
    assert engine().heedful_model_finish(made) and "decoder.embedding is missing" in last_error()
    assert not put(made, name, numbers, 2)
    assert put(made, name, numbers, 2) and "comes twice" in last_error()
    engine().heedful_model_free(made)
