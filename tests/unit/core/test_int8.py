"""Weights of 8 bits in the engine: exact sums of whole numbers, and results near those of fp32."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from core_folders import core_model, family_settings, instructions, known_instructions, save, texts
from heedful.core.sequences import encode, score_targets

# Of weights and of values, by the instructions (core/products.h).
LARGEST = {"avx2": 63}


def product(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, name: str) -> np.ndarray:
    """What core/products.h computes, in numpy: whole numbers, with a scale for each row and for each output."""
    largest = LARGEST.get(name, 127)
    most = np.abs(x).max(1, keepdims=True)
    exact = x.astype(np.float64) * (largest / most).astype(np.float64)
    values = np.rint(exact.astype(np.float32) if name == "portable" else exact).astype(np.int64)
    scales = np.abs(weights).max(1) / np.float32(largest)
    scales[scales == 0] = 1
    whole = np.rint(weights / scales[:, None]).astype(np.int64)
    assert max(np.abs(values).max(), np.abs(whole).max()) <= largest
    sums = (values @ whole.T).astype(np.float32) * scales
    return sums * (most / np.float32(largest)) + bias


@pytest.mark.parametrize("name", known_instructions())
@pytest.mark.parametrize(("width", "labels"), [(18, 7), (31, 16), (67, 53), (131, 1), (257, 67), (3, 131)])
def test_sums_are_exact(tmp_path: Path, width: int, labels: int, name: str) -> None:
    changes = {"width": width, "head": "tags", "num_labels": labels}

    def make_extreme(model) -> None:
        model.output.weight[0] = 0.0
        model.output.weight[-1] = 1.0  # all as large as can be

    folder = save(tmp_path, "encoder_only", family_settings("encoder_only", changes), change=make_extreme)
    tensors, rows = load_file(folder / "model.safetensors"), texts((1, 5, 13), 1)
    with instructions(name):
        model = core_model(folder, int8=True)
        hidden = np.concatenate(encode(model, rows, None, pooling=0, head=False, width=width))
        found = np.concatenate(encode(model, rows, None, pooling=0, head=True, width=labels))
    expected = product(hidden, tensors["output.weight"], tensors["output.bias"], name)
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", known_instructions())
def test_results_are_near_those_of_fp32(tmp_path: Path, name: str) -> None:
    settings = family_settings(
        "encoder_decoder", {"width": 66, "vocabulary_size": 263, "tied_output": False}, norm="pre"
    )
    folder = save(tmp_path, "encoder_decoder", settings, output=1.0)
    lengths = (1, 3, 17, 5, 2, 29, 11)
    sides = texts(lengths, 3, 263), texts(lengths[::-1], 5, 263)
    with instructions(name):
        scores = [np.concatenate(score_targets(core_model(folder, int8=int8), *sides)[0]) for int8 in (True, False)]
    distance = np.abs(scores[0] - scores[1])
    assert distance.max() < 0.07 and distance.mean() < 0.02  # of log-probabilities that go from -3 to -9


def test_instructions_with_as_many_bits_give_nearly_the_same(tmp_path: Path) -> None:
    """What differs is only where floats between two products are rounded."""
    folder = save(tmp_path, "encoder_decoder", family_settings("encoder_decoder", {"width": 35}))
    sides = texts((1, 3, 17, 5), 3), texts((2, 7, 13, 0), 5)
    found = []
    for name in set(known_instructions()) - LARGEST.keys():
        with instructions(name):
            found.append(np.concatenate(score_targets(core_model(folder, int8=True), *sides)[0]))
    for each in found[1:]:
        np.testing.assert_allclose(each, found[0], atol=1e-3)
