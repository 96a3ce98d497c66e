import math
from typing import Any

import pytest
import torch

from heedful.inspection.attention.entropy import attention_entropy, entropy_and_largest
from heedful.inspection.attention.recording import recorders_by_kind, recording_view
from heedful.models.decoder_only import DecoderOnly
from heedful.models.families import FAMILIES
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.recurrent import RecurrentConfig, RecurrentStackConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.settings.xlnet import XLNetConfig


def relative(weights: torch.Tensor) -> float:
    entropy, largest = entropy_and_largest(weights)
    return float(entropy / largest)


def test_an_even_spread_has_all_the_entropy_and_one_token_none() -> None:
    assert relative(torch.full((2, 3, 5, 7), 1 / 7)) == pytest.approx(1, abs=1e-6)
    sharp = torch.full((1, 3, 5, 7), 1e-30)
    sharp[..., 2] = 1
    assert relative(sharp) == pytest.approx(0, abs=1e-6)


def test_tokens_that_cannot_be_seen_do_not_count() -> None:
    causal = torch.tril(torch.ones(5, 5))
    assert relative((causal / causal.sum(1, keepdim=True))[None, None]) == pytest.approx(1, abs=1e-6)


def test_it_is_that_of_the_weights_of_all_examples() -> None:
    torch.manual_seed(3)
    stack = StackConfig(num_layers=2, norm="pre", attention=AttentionConfig(num_heads=2))
    model = DecoderOnly(DecoderOnlyConfig(53, 14, 29, stack=stack)).eval()
    texts = [torch.randint(4, 53, (1, length)) for length in (11, 5)]

    def read(reader):
        for text in texts:
            reader.hidden(text)
            yield

    found = attention_entropy(model, read)
    view, recorders = recording_view(model)
    sums = {name: [0.0, 0.0] for name in recorders}
    for text in texts:
        with torch.inference_mode():
            view.hidden(text)
        for name, recorder in recorders.items():
            for row, weights in enumerate(recorder.weights[0].transpose(0, 1)):
                for head in weights:
                    sums[name][0] -= sum(float(each) * math.log(each) for each in head[: row + 1])
                    sums[name][1] += math.log(row + 1)
    expected = [entropy / largest for entropy, largest in sums.values()]
    assert found == {"self": pytest.approx(expected, abs=1e-5)}


STACK = StackConfig(num_layers=3, attention=AttentionConfig(num_heads=2))
TWO = StackConfig(num_layers=2, attention=AttentionConfig(num_heads=2))
LAYERS = RecurrentStackConfig(2)


@pytest.mark.parametrize(
    ("family", "settings", "kinds"),
    [
        (
            "encoder_decoder",
            EncoderDecoderConfig(53, 14, 29, encoder=STACK, decoder=TWO),
            {"encoder": 3, "decoder": 2, "cross": 2},
        ),
        ("recurrent", RecurrentConfig(53, 14, 14, 29, encoder=LAYERS, decoder=LAYERS), {"cross": 1}),
        ("decoder_only", DecoderOnlyConfig(53, 14, 29, stack=STACK), {"self": 3}),
        ("encoder_only", EncoderOnlyConfig(53, 14, 29, stack=STACK), {"self": 3}),
        ("vision", VisionConfig((8, 8), (4, 4), width=14, stack=STACK), {"self": 3}),
        ("xlnet", XLNetConfig(53, 14, max_length=29, memory_length=7, stack=STACK), {"content": 3, "query": 3}),
    ],
)
def test_a_model_tells_the_kind_of_each_of_its_attention_layers(
    family: str, settings: Any, kinds: dict[str, int]
) -> None:
    view, recorders = recording_view(FAMILIES[family].build(settings))
    found = recorders_by_kind(view)
    assert {kind: len(layers) for kind, layers in found.items()} == kinds
    # Each layer is told of once, and the layers of a kind one after the other.
    assert {id(each) for layers in found.values() for each in layers} == {id(each) for each in recorders.values()}
    order = {id(recorder): number for number, recorder in enumerate(recorders.values())}
    assert all((numbers := [order[id(each)] for each in layers]) == sorted(set(numbers)) for layers in found.values())


def test_a_model_that_tells_nothing_of_its_attention_has_no_entropy() -> None:
    assert attention_entropy(torch.nn.Linear(3, 2), lambda _: iter([None])) == {}
