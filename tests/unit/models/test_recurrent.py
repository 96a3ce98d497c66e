from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from heedful.errors import UserError
from heedful.layers.dropout import seeded_dropout
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.parameter_count import counted
from heedful.models.recurrent import Recurrent
from heedful.presets import PRESETS
from heedful.settings.recurrent import RecurrentConfig, RecurrentStackConfig


def model(**settings) -> Recurrent:
    torch.manual_seed(1)
    return Recurrent(RecurrentConfig(53, 17, 22, 41, **settings))


def ids(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(3, 53, shape, generator=torch.Generator().manual_seed(seed))


def test_embeddings_and_output_share_one_matrix_unless_told_otherwise() -> None:
    shared = model()
    assert shared.output.weight is shared.source_embedding.table.weight
    assert shared.source_embedding.table is shared.target_embedding.table
    separate = model(shared_embeddings=False, tied_output=False)
    assert separate.output.weight is not separate.target_embedding.table.weight
    assert separate.source_embedding.table is not separate.target_embedding.table


@pytest.mark.parametrize("vocabulary", [321, 4_000, 8_000, 32_000])
def test_the_preset_is_as_large_as_the_transformer_that_it_is_compared_with(vocabulary: int) -> None:
    def count(preset: str, build: type) -> int:
        config = replace(PRESETS[preset]().model, vocabulary_size=vocabulary)
        with torch.device("meta"):
            return counted(build(config))

    transformer = count("translation_tiny", EncoderDecoder)
    assert count("recurrent_tiny", Recurrent) == pytest.approx(transformer, rel=0.06)


def test_a_width_that_cannot_be_halved_is_refused() -> None:
    with pytest.raises(UserError, match="hidden_width is 23, but must be even"):
        RecurrentConfig(hidden_width=23)


def test_there_is_no_longest_target() -> None:
    network = model().eval()
    network.resize_positions(97)
    assert (network.max_length, network.longest_target(5)) == (97, None)
    logits = network(ids(2, 97), ids(2, 89), torch.tensor([97, 71]))
    assert torch.isfinite(logits).all()


def test_a_decoding_state_is_as_large_as_planned() -> None:
    network = model(decoder=RecurrentStackConfig(3))
    state = network.new_state(7, 5, 128, 128)
    taken = sum(4 * tensor.numel() for tensor in (state.keys, state.memory, state.states))
    assert taken == 7 * network.decoding_bytes(5, 128)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_threads_that_share_the_weights_compute_the_gradients_of_one(cell: str) -> None:
    network = model(cell=cell).train()
    parameters = list(network.parameters())

    def gradients(number: int) -> list[torch.Tensor]:
        torch.set_num_threads(1)
        source, target = ids(13, 11, seed=number), ids(13, 7, seed=number + 100)
        lengths = torch.randint(1, 12, (13,), generator=torch.Generator().manual_seed(number))
        with seeded_dropout(number, torch.device("cpu")):
            return list(torch.autograd.grad(network(source, target, lengths).square().sum(), parameters))

    alone = [gradients(number) for number in range(6)]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(gradients, range(6)))
    for expected, found in zip(alone, together, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
