import pytest
import torch

from heedful.models import memory_plan
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.memory_plan import sentences_that_fit, tokens_that_fit
from heedful.models.recurrent import Recurrent
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.recurrent import RecurrentConfig, RecurrentStackConfig
from heedful.settings.stack import StackConfig


@pytest.fixture
def with_memory(monkeypatch: pytest.MonkeyPatch):
    return lambda size: monkeypatch.setattr(memory_plan, "memory_limit", lambda: size)


def test_batches_grow_with_the_memory_and_shrink_with_the_model(with_memory) -> None:
    small, large = EncoderDecoderConfig(1000, 64), EncoderDecoderConfig(1000, 512)
    with_memory(4 * 2**30)
    some = tokens_that_fit(small, 10**5, torch.device("cpu"), 2)
    assert tokens_that_fit(large, 10**7, torch.device("cpu"), 2) < some
    with_memory(2**30)
    assert tokens_that_fit(small, 10**5, torch.device("cpu"), 2) < some
    with_memory(2**20)
    assert tokens_that_fit(small, 10**5, torch.device("cpu"), 2) == 256


@pytest.mark.parametrize(
    ("build", "config"), [(EncoderDecoder, EncoderDecoderConfig(1000, 512)), (Recurrent, RecurrentConfig(1000))]
)
def test_fewer_sentences_are_decoded_at_a_time_where_memory_is_short(build, config, with_memory) -> None:
    with torch.device("meta"):
        model = build(config)
    with_memory(16 * 2**30)
    plenty = sentences_that_fit(model, 5, None)
    with_memory(2**30)
    assert 1 <= sentences_that_fit(model, 5, None) < plenty
    with_memory(2**20)
    assert sentences_that_fit(model, 5, None) == 1


@pytest.mark.parametrize("rows", [1, 5, 12])
def test_a_cache_that_grows_stays_within_three_times_the_plan(rows: int) -> None:
    """Four times are there: the plan takes a quarter. Paths that part at once take the most places."""
    sentences, length = 3, 131
    with torch.device("meta"):
        model = EncoderDecoder(EncoderDecoderConfig(101, 64, max_length=length))
        state = model.new_state(sentences, rows, length, length)
    most = 0
    for step in range(length):
        before = state.cache.keys, state.cache.values
        state.cache.make_room((step + 1) * rows)
        after = state.cache.keys, state.cache.values
        held = {id(each): each.nbytes for each in (state.keys, state.values, *before, *after)}
        most = max(most, sum(held.values()))
    assert most <= 3 * sentences * model.decoding_bytes(rows, length)


def additive() -> EncoderDecoderConfig:
    stack = StackConfig(2, attention=AttentionConfig(scoring="additive"))
    return EncoderDecoderConfig(101, 64, max_length=31, encoder=stack, decoder=stack)


@pytest.mark.parametrize(
    ("build", "config"),
    [
        (EncoderDecoder, EncoderDecoderConfig(101, 64, max_length=31)),
        (EncoderDecoder, additive()),
        (Recurrent, RecurrentConfig(101, 32, 64, 31)),
        (Recurrent, RecurrentConfig(101, 32, 64, 31, cell="gru", attention="general")),
        (Recurrent, RecurrentConfig(101, 32, 64, 31, attention="dot", decoder=RecurrentStackConfig(1))),
    ],
)
def test_the_estimate_covers_what_a_training_step_really_takes(build, config) -> None:
    """The tensors kept for the backward pass, counted one by one, stay below the plan."""
    torch.manual_seed(1)
    model = build(config).train()
    source, target = torch.randint(3, 101, (7, 31)), torch.randint(3, 101, (7, 31))
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if not isinstance(tensor, torch.nn.Parameter):
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model.hidden(source, target, torch.tensor([31, 29, 23, 19, 17, 13, 11]))
    assert sum(kept.values()) <= config.activation_bytes() * (source.numel() + target.numel())
