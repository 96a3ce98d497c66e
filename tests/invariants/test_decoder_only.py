"""Two ways to the same result, for the settings that decoder-only models have."""

import pytest
import torch

from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode
from heedful.inspection.attention.recording import recording_view
from heedful.layers.positions import RelativeBucketPositions
from heedful.models.decoder_only import DecoderOnly
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.relative_buckets import RelativeBucketConfig
from heedful.settings.stack import StackConfig

VOCABULARY, T, END = 31, 41, 2

# Inner widths are multiples of 16 where the activation is the approximated GELU: torch computes what is left over
# behind whole vectors by another formula, so that bits would depend on the number of rows.

VARIANTS = {
    "gpt2": {},
    "modern": {
        "positions": "rotary",
        "stack": StackConfig(
            3,
            "pre",
            0.1,
            AttentionConfig(num_heads=6, num_key_value_heads=2, key_width=4, bias=False),
            FeedForwardConfig(23, "swiglu", bias=False),
            norm_kind="rms",
        ),
    },
    "local": {
        "stack": StackConfig(
            3, "pre", 0.1, AttentionConfig(num_heads=3), FeedForwardConfig(32, "gelu_tanh"), local_window=5
        )
    },
    "alibi": {
        "positions": "alibi",
        "stack": StackConfig(
            2, "pre", 0.1, AttentionConfig(num_heads=6, num_key_value_heads=2, key_width=4), local_window=7
        ),
    },
    "relative_buckets": {"positions": RelativeBucketConfig(num_buckets=8, max_distance=19)},
    "post": {
        "positions": "sinusoidal",
        "tied_output": False,
        "embedding": EmbeddingConfig(norm=True),
        "stack": StackConfig(2, "post", 0.1, AttentionConfig(num_heads=3, value_width=5), FeedForwardConfig(23)),
    },
}


@pytest.fixture(params=VARIANTS)
def model(request: pytest.FixtureRequest) -> DecoderOnly:
    torch.manual_seed(1)
    stack = StackConfig(3, "pre", 0.1, AttentionConfig(num_heads=3), FeedForwardConfig(32, "gelu_tanh"))
    settings = {"vocabulary_size": VOCABULARY, "width": 18, "max_length": 43, "stack": stack}
    network = DecoderOnly(DecoderOnlyConfig(**{**settings, **VARIANTS[request.param]})).eval()
    if isinstance(network.positions, RelativeBucketPositions):
        torch.nn.init.normal_(network.positions.biases)  # fresh ones are too small to matter
    return network


def ids(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("prompt", [0, 1, 7, 19])
@torch.inference_mode()
def test_cached_and_uncached_logits_agree_at_every_position(model: DecoderOnly, prompt: int) -> None:
    rows = ids(5, T)
    lengths = torch.tensor([prompt] * 5)
    state = model.new_state(5, 1, prompt, T - prompt)
    state.insert([0, 1, 2, 3, 4], model.prefill(rows[:, :prompt], lengths), [0, 1, 2, 3, 4])
    cached = torch.stack([model.step(rows[:, t], state) for t in range(prompt, T)], dim=1)
    torch.testing.assert_close(cached, model(rows)[:, prompt:], atol=1e-5, rtol=0)


@torch.inference_mode()
def test_the_future_changes_nothing(model: DecoderOnly) -> None:
    rows = ids(3, T)
    changed = torch.cat([rows[:, :17], ids(3, T - 17, seed=2)], dim=1)
    assert torch.equal(model(rows)[:, :17], model(changed)[:, :17])


@torch.inference_mode()
def test_a_packed_document_is_computed_as_if_it_stood_alone(model: DecoderOnly) -> None:
    first, second, third = ids(1, 7), ids(1, 11, seed=2), ids(1, 5, seed=3)
    packed = torch.cat([first, second, third], dim=1)
    documents = torch.tensor([[1] * 7 + [2] * 11 + [3] * 5])
    together = model(packed, documents)
    alone = torch.cat([model(each) for each in (first, second, third)], dim=1)
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


@torch.inference_mode()
def test_the_recorded_weights_are_those_of_the_fused_model(model: DecoderOnly) -> None:
    view, recorders = recording_view(model)
    torch.testing.assert_close(view(ids(2, T)), model(ids(2, T)), atol=1e-5, rtol=0)
    weights = recorders["blocks.1.attention"].weights
    assert weights is not None
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, model.config.stack.attention.num_heads, T))
    window = model.config.stack.local_window
    if window:
        seen = (weights > 0).any(1)[0]
        far = torch.arange(T)[:, None] - torch.arange(T) >= window
        assert not seen[far].any()


def test_text_and_scores_do_not_depend_on_the_batch(model: DecoderOnly) -> None:
    """To the last bit: prompts of all lengths, greedy and sampled, alone and side by side."""
    requests = [Request(n, ids(1, n % 23, seed=n)[0].tolist()) for n in range(37)]
    for sampling in (None, SamplingOptions(0.9, top_k=11, seed=3)):
        options = DecodingOptions(max_length=13, sampling=sampling)
        found = [sorted(decode(model, requests, options, size), key=lambda each: each.index) for size in (1, 7, 64)]
        assert found[0] == found[1] == found[2]


@torch.inference_mode()
def test_greedy_search_takes_the_likeliest_token_each_time(model: DecoderOnly) -> None:
    prompt = ids(1, 5)[0].tolist()
    ((found,),) = [
        each.hypotheses for each in decode(model, [Request(0, prompt)], DecodingOptions(beam=1, max_length=9), 1)
    ]
    tokens = list(prompt)
    for token in found.tokens:
        logits = model(torch.tensor([tokens]))[0, -1]
        logits[:2] = -torch.inf  # padding and start are never chosen
        assert token == int(logits.argmax())
        tokens.append(token)


def test_the_context_limits_what_follows_a_prompt(model: DecoderOnly) -> None:
    if model.positions.extends:
        assert model.longest_target(40) is None
        return
    requests = [Request(n, ids(1, 40 + n, seed=n)[0].tolist()) for n in range(3)]
    results = {
        each.index: each for each in decode(model, requests, DecodingOptions(beam=1, max_length=50, min_length=9), 2)
    }
    assert [len(results[n].hypotheses[0].tokens) for n in range(3)] == [3, 2, 1]
