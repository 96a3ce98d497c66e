import math

import pytest
import torch

from heedful.inspection.attention.entropy import attention_entropy, entropy_and_largest, kind_of
from heedful.inspection.attention.recording import recording_view
from heedful.layers.attention import AttentionConfig
from heedful.layers.blocks import StackConfig
from heedful.models.decoder_only import DecoderOnly, DecoderOnlyConfig


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


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("encoder.3.attention", "encoder"),
        ("decoder.0.attention", "decoder"),
        ("decoder.0.cross_attention", "cross"),
        ("decoder.cross_attention", "cross"),
        ("blocks.1.attention", "self"),
        ("blocks.1.attention.query", "query"),
    ],
)
def test_the_kind_of_a_layer_is_read_off_its_name(name: str, kind: str) -> None:
    assert kind_of(name) == kind
