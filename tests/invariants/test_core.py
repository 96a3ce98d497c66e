"""The engine computes what torch computes, whatever the settings of a model."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_folders import both, family_settings, merged, save, texts
from heedful.core.sequences import score_targets
from heedful.decoding import DecodingOptions, Request, decode
from heedful.errors import UserError
from heedful.tasks.encoding.seam import encoder_computation
from heedful.tasks.language_modeling.seam import text_computation
from heedful.tasks.translation.seam import pair_computation
from heedful.text.framing import Framed

# Both compute with floats of 24 bits; log-probabilities here go down to about -40.
CLOSE = {"rtol": 1e-5, "atol": 5e-5}
SCALINGS = {
    "linear": {"kind": "linear", "factor": 3.0},
    "ntk": {"kind": "ntk", "factor": 5.0},
    "llama3": {"kind": "llama3", "factor": 7.0, "original_length": 23},
}
POSITIONS = {
    name: {"positions": name}
    for name in ("sinusoidal", "sinusoid_halves", "learned", "rotary", "alibi", "relative_buckets", "none")
}
POSITIONS |= {"rotary base": {"positions": {"scheme": "rotary", "base": 503.0}}}
POSITIONS |= {
    f"rotary {kind}": {"positions": {"scheme": "rotary", "scaling": scaling}} for kind, scaling in SCALINGS.items()
}
POSITIONS |= {
    f"buckets {buckets} {farthest}": {
        "positions": {"scheme": "relative_buckets", "num_buckets": buckets, "max_distance": farthest}
    }
    for buckets, farthest in ((4, 7), (6, 11), (8, 64), (14, 15))
}
STACKS = {
    "pre": {"norm": "pre"},
    "post": {"norm": "post"},
    "rms": {"norm_kind": "rms"},
    "rms pre": {"norm_kind": "rms", "norm": "pre"},
    "epsilon": {"norm_epsilon": 0.07},
    **{name: {"feed_forward": {"activation": name}} for name in ("relu", "gelu", "gelu_tanh", "silu", "swiglu")},
    "swiglu of odd width": {"feed_forward": {"activation": "swiglu", "inner_width": 17}},
    "narrow inside": {"feed_forward": {"inner_width": 1}},
    "usual inner width": {"feed_forward": {"inner_width": None}},
    "no feed-forward bias": {"feed_forward": {"bias": False}},
    "no attention bias": {"attention": {"bias": False}},
    "no bias": {"attention": {"bias": False}, "feed_forward": {"bias": False}},
    "one head": {"attention": {"num_heads": 1}},
    "seven heads": {"attention": {"num_heads": 7}},
    "one pair of keys and values": {"attention": {"num_key_value_heads": 1}},
    "two pairs for six": {"attention": {"num_heads": 6, "num_key_value_heads": 2}},
    "usual widths": {"attention": {"key_width": None, "value_width": None}},
    **{
        f"widths {keys} {values}": {"attention": {"key_width": keys, "value_width": values}}
        for keys, values in ((2, 1), (16, 16), (34, 17), (38, 53), (4, 67), (6, 131))
    },
    "shared wide values": {"attention": {"num_heads": 4, "num_key_value_heads": 2, "value_width": 71}},
    "additive": {"attention": {"scoring": "additive"}},
    "additive and shared": {"attention": {"scoring": "additive", "num_key_value_heads": 1}},
    "not scaled": {"attention": {"scaled": False}},
    **{f"window {size}": {"local_window": size, "num_layers": 3} for size in (1, 2, 3, 17, 2**31 - 1)},
    "one layer": {"num_layers": 1},
    "five layers": {"num_layers": 5},
}
EMBEDDINGS = {
    "scaled": {"embedding": {"scaled": True}},
    "not scaled embeddings": {"embedding": {"scaled": False}},
    "segments": {"embedding": {"segments": 3}},
    "embedding norm": {"embedding": {"norm": True, "norm_epsilon": 0.03}},
    "all of embedding": {"embedding": {"scaled": False, "segments": 2, "norm": True}},
    "odd width": {"width": 13},
    "wide": {"width": 35},
    "special tokens": {"special_tokens": {"pad": 7, "start": 5, "end": 11, "mask": 3}},
    "large vocabulary": {"vocabulary_size": 773},
}
OF_FAMILIES = {
    "encoder_decoder": {
        "untied": {"tied_output": False},
        "output bias": {"output_bias": True},
        "untied with bias": {"tied_output": False, "output_bias": True},
        "not shared": {"shared_embeddings": False},
        "not shared, untied": {"shared_embeddings": False, "tied_output": False, "output_bias": True},
        "two stacks": {
            "positions": "learned",
            "encoder": {"attention": {"num_heads": 5, "value_width": 7}, "norm": "pre", "local_window": 3},
            "decoder": {"attention": {"num_heads": 2, "key_width": 9}, "norm_kind": "rms"},
        },
        "two kinds of rotary heads": {
            "positions": "rotary",
            "encoder": {"attention": {"num_heads": 2, "key_width": 10}},
            "decoder": {"attention": {"num_heads": 5, "key_width": 4}},
        },
        "two kinds of biased heads": {"positions": "alibi", "encoder": {"attention": {"num_heads": 7}}},
        "two kinds of bucket heads": {"positions": "relative_buckets", "encoder": {"attention": {"num_heads": 5}}},
    },
    "decoder_only": {"untied": {"tied_output": False}},
    "encoder_only": {
        "masked": {"head": "masked"},
        "masked, not scaled": {"head": "masked", "embedding": {"scaled": False}},
        "classes": {"head": "classes", "num_labels": 3},
        "one class": {"head": "classes", "num_labels": 1},
        "classes by token": {"head": "classes", "num_labels": 19, "pooling": "class_token"},
        "classes behind a pooler": {"head": "classes", "num_labels": 5, "pooler": True, "pooling": "class_token"},
        "classes behind a mean pooler": {"head": "classes", "num_labels": 5, "pooler": True},
        "tags": {"head": "tags", "num_labels": 7},
        "pooler without use": {"head": "tags", "num_labels": 7, "pooler": True},
        "masked with a pooler": {"head": "masked", "pooler": True},
        "none": {"head": "none"},
        "pooler without a head": {"head": "none", "pooler": True},
        **{f"convolution {size}": {"convolution": size} for size in (1, 3, 5, 13)},
        "BERT": {
            "head": "masked",
            "embedding": {"scaled": False, "segments": 2, "norm": True},
            "stack": {"feed_forward": {"activation": "gelu"}},
        },
    },
}
CASES = [
    pytest.param(family, stack, changes, id=f"{family}-{name}")
    for family, own in OF_FAMILIES.items()
    for name, stack, changes in (
        *((name, stack, {}) for name, stack in STACKS.items()),
        *((name, {}, changes) for name, changes in {**POSITIONS, **EMBEDDINGS, **own}.items()),
    )
]


def check_alike(folder: Path, max_length: int | None = None) -> None:
    """Compare all that a model computes."""
    core, network = both(folder, max_length)
    assert core.max_length == network.max_length
    {"encoder_decoder": check_translating, "decoder_only": check_continuing, "encoder_only": check_encoding}[
        core.family
    ](core, network)


def check_translating(core, network) -> None:
    vocabulary = core.config.vocabulary_size
    sources, targets = (texts(lengths, seed, vocabulary) for lengths, seed in SIDES)
    pairs = list(zip(sources, targets, strict=True))
    found, expected = (pair_computation(each).token_scores(pairs) for each in (core, network))
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, **CLOSE)
    found, expected = (pair_computation(each).cross_weights(sources, targets) for each in (core, network))
    for own, other in zip(found, expected, strict=True):
        assert own.shape == other.shape
        np.testing.assert_allclose(own, other, atol=1e-5)
    check_decoding(core, network, sources)


SIDES = (((0, 1, 5, 16, 29), 1), ((3, 0, 1, 19, 15), 2))


def check_continuing(core, network) -> None:
    documents = texts((1, 2, 5, 17, 37), 3, core.config.vocabulary_size)
    found, _ = score_targets(core, [each[:1] for each in documents[1:]], [each[1:] for each in documents[1:]])
    for own, ids in zip(found, documents[1:], strict=True):
        with torch.inference_mode():
            scores_TV = network(torch.tensor([ids]))[0].log_softmax(-1)
        expected = scores_TV[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        np.testing.assert_allclose(own, expected, **CLOSE)
    end = core.special_tokens.end
    stream = np.array([end, *(token for each in documents for token in (*each, end))])
    losses = [text_computation(each).loss(stream) for each in (core, network)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    check_decoding(core, network, [[], *documents])


def check_encoding(core, network) -> None:
    special = core.special_tokens
    ids = texts((0, 1, 3, 14, 15, 29), 4, core.config.vocabulary_size)
    framed = [Framed([special.start, *each, special.end], len(each) + 2, False) for each in ids]
    framed.append(Framed([special.start, *ids[2], special.end, *ids[3], special.end], 5, False))
    computations = [encoder_computation(each) for each in (core, network)]
    for pooling in ("class_token", "mean", None):
        with torch.inference_mode():
            found, expected = (each.pooled(framed, pooling, 3) for each in computations)
        np.testing.assert_allclose(np.stack(found), np.stack(expected), **CLOSE)
    if core.config.head == "none":
        return
    with torch.inference_mode():
        found, expected = (each.logits(framed, 3) for each in computations)
    for own, other in zip(found, expected, strict=True):
        assert own.shape == other.shape
        np.testing.assert_allclose(own, other, **CLOSE)


def check_decoding(core, network, sources) -> None:
    requests = [Request(number, source) for number, source in enumerate(sources)]
    for options in (DecodingOptions(beam=1, max_extra=7), DecodingOptions(beam=3, nbest=3, max_extra=7)):
        found, expected = (
            {each.index: each.hypotheses for each in decode(model, requests, options, 5)} for model in (core, network)
        )
        for index, hypotheses in expected.items():
            assert [each.tokens for each in found[index]] == [each.tokens for each in hypotheses]
            assert [each.finished for each in found[index]] == [each.finished for each in hypotheses]
            for own, other in zip(found[index], hypotheses, strict=True):
                np.testing.assert_allclose(own.token_scores, other.token_scores, **CLOSE)
                np.testing.assert_allclose(own.score, other.score, **CLOSE)


@pytest.mark.parametrize(("family", "stack", "changes"), CASES)
def test_a_setting_means_the_same(family: str, stack: dict, changes: dict, tmp_path: Path) -> None:
    check_alike(save(tmp_path, family, family_settings(family, changes, **stack)))


@pytest.mark.parametrize("max_length", [3, 17, 60, 62, 127])
@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoid_halves", "learned", "rotary", "alibi"])
@pytest.mark.parametrize("family", OF_FAMILIES)
def test_another_length_means_the_same(family: str, positions: str, max_length: int, tmp_path: Path) -> None:
    folder = save(tmp_path, family, family_settings(family, {"positions": positions}))
    core, network = both(folder, max_length)
    assert core.max_length == network.max_length == max_length
    longest = max_length if family != "encoder_only" else max_length - 2
    check = {"encoder_decoder": check_long_pair, "decoder_only": check_long_text, "encoder_only": check_long_row}
    check[family](core, network, texts([longest], 5)[0])


def check_long_pair(core, network, ids) -> None:
    found, expected = (pair_computation(each).token_scores([(ids, ids[::-1])]) for each in (core, network))
    np.testing.assert_allclose(found, expected, **CLOSE)
    check_decoding(core, network, [ids])


def check_long_text(core, network, ids) -> None:
    losses = [text_computation(each).loss(np.array([core.special_tokens.end, *ids])) for each in (core, network)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    check_decoding(core, network, [ids[:-1]])


def check_long_row(core, network, ids) -> None:
    row = Framed([core.special_tokens.start, *ids, core.special_tokens.end], len(ids) + 2, False)
    with torch.inference_mode():
        found, expected = (encoder_computation(each).pooled([row], None, 1) for each in (core, network))
    np.testing.assert_allclose(found, expected, **CLOSE)


@st.composite
def any_settings(draw: st.DrawFn, family: str) -> dict:
    stacks = {name: {} for name in (("encoder", "decoder") if family == "encoder_decoder" else ("stack",))}
    for name in stacks:
        for part in draw(st.lists(st.sampled_from(sorted(STACKS)), min_size=2, max_size=5)):
            stacks[name] = merged(stacks[name], STACKS[part])
    found = {}
    for table, most in ((POSITIONS, 1), (EMBEDDINGS, 2), (OF_FAMILIES[family], 2)):
        for part in draw(st.lists(st.sampled_from(sorted(table)), max_size=most)):
            found = merged(found, table[part])
    return family_settings(family, merged(stacks, found))


@pytest.mark.parametrize("family", OF_FAMILIES)
@settings(max_examples=13, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.data())
def test_any_settings_mean_the_same(family: str, tmp_path: Path, draw: st.DataObject) -> None:
    chosen = draw.draw(any_settings(family))
    try:
        folder = save(tmp_path, family, chosen)
    except UserError:  # some do not go together, such as rotary positions and odd widths
        return
    check_alike(folder)
