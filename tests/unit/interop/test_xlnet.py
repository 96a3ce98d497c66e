"""Random weights of odd sizes, compared with Hugging Face's implementation."""

from pathlib import Path

import pytest
import torch

from heedful.errors import UserError
from heedful.interop.foreign_config import ForeignConfig
from heedful.interop.mapping import Tensors
from heedful.interop.xlnet import convert
from heedful.models.weights_file import load_parameters
from heedful.models.xlnet import XLNet

transformers = pytest.importorskip("transformers")
B, T, M, P, VOCABULARY = 3, 7, 5, 4, 53


def build_pair(**changes) -> tuple["transformers.XLNetLMHeadModel", XLNet]:
    sizes = {"vocab_size": VOCABULARY, "d_model": 24, "n_layer": 3, "n_head": 3, "d_inner": 43, "mem_len": 11}
    torch.manual_seed(1)
    theirs = transformers.XLNetLMHeadModel(transformers.XLNetConfig(**sizes, **changes)).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    tensors = Tensors(theirs.state_dict())
    imported = convert(ForeignConfig(Path("config.json"), theirs.config.to_dict()), tensors)
    assert not tensors.left_over
    ours = XLNet(imported.settings).eval()
    load_parameters(ours, imported.tensors)
    return theirs, ours


def ids(*shape: int, seed: int = 2) -> torch.Tensor:
    return torch.randint(0, VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


def ranks(seed: int = 3) -> torch.Tensor:
    return torch.stack([torch.randperm(T, generator=torch.Generator().manual_seed(seed + row)) for row in range(B)])


@pytest.mark.parametrize(
    "changes",
    [{}, {"attn_type": "uni"}, {"clamp_len": 3}, {"ff_activation": "relu"}],
    ids=["bi", "uni", "clamped", "relu"],
)
@pytest.mark.parametrize("with_memories", [True, False])
@pytest.mark.parametrize("with_segments", [True, False])
@torch.inference_mode()
def test_logits_are_those_of_hugging_face(changes: dict, with_memories: bool, with_segments: bool) -> None:
    theirs, ours = build_pair(**changes)
    mems = theirs(ids(B, M, seed=4), use_mems=True).mems if with_memories else None
    memories = [each.transpose(0, 1) for each in mems] if mems else None
    segments = torch.arange(T).expand(B, T) // 4 if with_segments else None
    order = ranks()
    allowed = order[:, None] < order[:, :, None]
    # Without a memory the first of the order sees nothing, where Hugging Face's shows it all, itself included; under a
    # causal mask this befalls more of them.
    places = torch.stack([row.argsort()[-P:] for row in order])
    mapping = torch.nn.functional.one_hot(places, T).float()
    # Row by row: with a causal mask theirs takes permutations of one row only.
    rows = [slice(row, row + 1) for row in range(B)]
    theirs_logits = torch.cat(
        [
            theirs(
                ids(B, T)[row],
                perm_mask=(~allowed[row]).float(),
                target_mapping=mapping[row],
                mems=[each[:, row] for each in mems] if mems else None,
                token_type_ids=None if segments is None else segments[row],
            ).logits
            for row in rows
        ]
    )
    ours_logits = ours(ids(B, T), allowed, mapping, memories, segments)
    sighted = torch.ones(B, P, dtype=torch.bool)
    if not with_memories:
        visible = allowed & torch.ones(T, T).tril().bool() if ours.config.causal else allowed
        sighted = visible.any(-1).gather(1, places)
    assert sighted.sum() >= B
    torch.testing.assert_close(ours_logits[sighted], theirs_logits[sighted], atol=1e-4, rtol=0)


@pytest.mark.parametrize("attention", ["bi", "uni"])
@torch.inference_mode()
def test_contents_without_targets(attention: str) -> None:
    theirs, ours = build_pair(attn_type=attention)
    torch.testing.assert_close(ours(ids(B, T)), theirs(ids(B, T)).logits, atol=1e-4, rtol=0)


@torch.inference_mode()
def test_what_is_remembered_from_left_to_right() -> None:
    theirs, ours = build_pair(attn_type="uni")
    first = theirs(ids(B, M, seed=4), use_mems=True)
    second = theirs(ids(B, M, seed=5), mems=first.mems, use_mems=True)
    memories = ours.remember(ids(B, M, seed=5), memories=ours.remember(ids(B, M, seed=4)))
    for ours_state, their_state in zip(memories, second.mems, strict=True):
        torch.testing.assert_close(ours_state, their_state.transpose(0, 1), atol=1e-4, rtol=0)


@pytest.mark.parametrize("setting", [{"same_length": True}, {"bi_data": True}, {"tie_word_embeddings": False}])
def test_what_heedful_does_not_have_is_refused(setting: dict) -> None:
    config = {"vocab_size": 7, "d_model": 4, "n_layer": 1, "n_head": 2, "d_inner": 3, **setting}
    with pytest.raises(UserError, match=next(iter(setting))):
        convert(ForeignConfig(Path("config.json"), config), Tensors({}))
