"""What clients are told of a model's engine and precision is what computes."""

from pathlib import Path

import pytest
import torch

from heedful.core.model import CoreModel
from heedful.layers import int8_linear
from heedful.server.settings import ServerSettings
from heedful.server.worker.loop import _card, _load
from heedful.tasks.computing import Computing


@pytest.fixture(autouse=True)
def threads_as_before():
    """A worker that loads a model holds its process to one thread, and flushes denormal numbers there."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
    torch.set_flush_denormal(False)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("engine", ["auto", "core", "torch"])
def test_engine_and_precision(untrained_model: Path, monkeypatch, engine: str, precision: str) -> None:
    monkeypatch.setattr(int8_linear, "SMALLEST_RATIO", 0)  # the layers are so small that fp32 would be kept
    settings = ServerSettings({"m": str(untrained_model)}, computing=Computing("cpu", engine, precision))
    loaded = _load(str(untrained_model), settings)
    card, network = _card("m", loaded, untrained_model), loaded.pipeline.model
    assert card.engine == ("core" if isinstance(network, CoreModel) else "torch")
    assert engine == "auto" or card.engine == engine
    if card.engine == "core":
        quantized = network.int8
    else:
        quantized = any(isinstance(each, int8_linear.Int8Linear) for each in network.modules())
    assert card.precision == precision == ("int8" if quantized else "fp32")
