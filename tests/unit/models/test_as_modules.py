"""Models of every family are modules as a PyTorch user expects them."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import heedful
from heedful.models import (
    DecoderOnly,
    DecoderOnlyConfig,
    EncoderDecoder,
    EncoderDecoderConfig,
    EncoderOnly,
    EncoderOnlyConfig,
    Recurrent,
    RecurrentConfig,
    VisionConfig,
    VisionTransformer,
    XLNet,
    XLNetConfig,
)
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig

V, D = 31, 12
STACK = StackConfig(2, "pre", 0.2, AttentionConfig(num_heads=3), FeedForwardConfig(inner_width=14))
POST = StackConfig(2, "post", 0.2, AttentionConfig(num_heads=3), FeedForwardConfig(inner_width=14))


def ids(*shape: int) -> Tensor:
    return torch.randint(3, V, shape, generator=torch.Generator().manual_seed(7))


Case = tuple[Callable[[], nn.Module], tuple[Tensor, ...]]
FAMILIES: dict[str, Case] = {
    "encoder_decoder": (
        lambda: EncoderDecoder(EncoderDecoderConfig(V, D, encoder=STACK, decoder=STACK)),
        (ids(2, 5), ids(2, 7)),
    ),
    "decoder_only": (lambda: DecoderOnly(DecoderOnlyConfig(V, D, 17, stack=STACK)), (ids(2, 7),)),
    "encoder_only": (
        lambda: EncoderOnly(EncoderOnlyConfig(V, D, 17, stack=STACK, head="classes", num_labels=3, convolution=3)),
        (ids(2, 7),),
    ),
    "recurrent": (lambda: Recurrent(RecurrentConfig(V, D, 14)), (ids(2, 5), ids(2, 7))),
    "xlnet": (lambda: XLNet(XLNetConfig(V, D, 17, 4, stack=POST)), (ids(2, 7),)),
    "vision": (
        lambda: VisionTransformer(VisionConfig((8, 12), (4, 4), num_classes=5, width=D, stack=STACK)),
        (torch.randn(2, 3, 8, 12),),
    ),
}
every_family = pytest.mark.parametrize(("make", "inputs"), FAMILIES.values(), ids=list(FAMILIES))


def fresh(make: Callable[[], nn.Module], seed: int = 1) -> nn.Module:
    torch.manual_seed(seed)
    return make().eval()


@every_family
@torch.no_grad()
def test_a_state_dict_holds_all_that_a_model_knows(make: Callable[[], nn.Module], inputs: tuple[Tensor, ...]) -> None:
    model, other = fresh(make), fresh(make, seed=2)
    assert not torch.equal(model(*inputs), other(*inputs))
    assert not any(other.load_state_dict(model.state_dict()))
    assert torch.equal(model(*inputs), other(*inputs))


@every_family
@torch.no_grad()
def test_a_copy_gives_the_same_and_shares_nothing(make: Callable[[], nn.Module], inputs: tuple[Tensor, ...]) -> None:
    model = fresh(make)
    twin, before = copy.deepcopy(model), model(*inputs)
    assert torch.equal(twin(*inputs), before)
    assert sum(1 for _ in twin.parameters()) == sum(1 for _ in model.parameters())  # what is tied stays tied
    for parameter in twin.parameters():
        parameter.fill_(0.5)
    assert torch.equal(model(*inputs), before)


@every_family
@torch.no_grad()
def test_dropout_is_for_training_alone(make: Callable[[], nn.Module], inputs: tuple[Tensor, ...]) -> None:
    model = fresh(make)
    assert torch.equal(model(*inputs), model(*inputs))
    model.train()
    assert not torch.equal(model(*inputs), model(*inputs))
    assert not model.eval().training


@every_family
@torch.no_grad()
def test_a_model_moves_to_other_types_and_devices(make: Callable[[], nn.Module], inputs: tuple[Tensor, ...]) -> None:
    model = fresh(make)
    expected = model(*inputs)
    exact = model.to(torch.float64)(*(each.double() if each.is_floating_point() else each for each in inputs))
    assert exact.dtype == torch.float64
    torch.testing.assert_close(exact.float(), expected, atol=1e-5, rtol=1e-5)
    assert {each.device.type for each in model.to("meta").parameters()} == {"meta"}


@every_family
@torch.no_grad()
def test_a_compiled_model_gives_the_same(make: Callable[[], nn.Module], inputs: tuple[Tensor, ...]) -> None:
    model = fresh(make)
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(*inputs), model(*inputs), atol=1e-6, rtol=1e-6)


def test_a_compiled_model_with_rotary_positions_gives_the_same_logits_and_gradients() -> None:
    model = heedful.build("language_tiny", vocabulary_size=53, width=24, stack={"num_layers": 1, "dropout": 0.0})
    ids_BT = torch.randint(3, 53, (2, 7))
    compiled = torch.compile(model, backend="aot_eager")
    found = []
    for each in (model, compiled):
        logits_BTV = each(ids_BT)
        found.append((logits_BTV, *torch.autograd.grad(logits_BTV.square().sum(), list(model.parameters()))))
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ["encoder_decoder", "recurrent", "encoder_only"])
@torch.no_grad()
def test_without_lengths_nothing_is_padding(family: str) -> None:
    make, inputs = FAMILIES[family]
    model = fresh(make)
    assert torch.equal(model(*inputs), model(*inputs, torch.full((2,), inputs[0].shape[1])))


@pytest.mark.parametrize("family", ["encoder_decoder", "recurrent", "encoder_only"])
@torch.no_grad()
def test_lengths_may_be_a_list_and_no_row_has_others_than_fit(family: str) -> None:
    make, inputs = FAMILIES[family]
    model, length = fresh(make), inputs[0].shape[1]
    lengths = [length, 2]
    expected = model(*inputs, torch.tensor(lengths))
    assert torch.equal(model(*inputs, lengths), expected)
    assert not torch.equal(expected, model(*inputs))
    for row, wrong in ((0, length + 3), (1, 0), (1, -1)):
        given = [length, length]
        given[row] = wrong
        message = f"the length of row {row} is {wrong}, but must be from 1 to {length}, the positions of a row"
        for each in (given, torch.tensor(given)):
            with pytest.raises(ValueError, match=message):
                model(*inputs, each)
    for odd in ([length], [1.0, 2.0], torch.ones(2, 1, dtype=torch.long)):
        with pytest.raises(ValueError, match="lengths are one whole number for each of the 2 rows, not"):
            model(*inputs, odd)
    compiled = torch.compile(model, backend="eager", fullgraph=False)
    torch.testing.assert_close(compiled(*inputs, torch.tensor(lengths)), expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("family", ["encoder_decoder", "decoder_only", "recurrent", "xlnet"])
def test_a_model_without_a_vocabulary_is_an_error_in_words(family: str) -> None:
    kind = type(fresh(FAMILIES[family][0]))
    with pytest.raises(heedful.UserError, match="give vocabulary_size"):
        kind(type(fresh(FAMILIES[family][0]).config)())


@pytest.mark.parametrize("family", ["encoder_decoder", "decoder_only", "recurrent", "xlnet"])
def test_every_model_with_the_seam_decodes(family: str) -> None:
    model = fresh(FAMILIES[family][0])
    sources = [[5, 7, 11], [13, 4]]
    targets = heedful.greedy(model, sources, max_length=5)
    found = heedful.beam(model, sources, heedful.DecodingOptions(beam=1, max_length=5))
    assert [each[0].tokens for each in found] == targets
    wide = heedful.beam(model, sources, heedful.DecodingOptions(beam=3, nbest=2, max_length=5, length_penalty=0.0))
    assert [len(each) for each in wide] == [2, 2]
    assert all(each[0].score >= each[1].score for each in wide)
