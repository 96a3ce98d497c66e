"""What is said of a tensor that is missing names it as the file does."""

from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from core_folders import core_model, family_settings, save
from heedful.core.settings import engine_name, stored_name
from heedful.errors import UserError

ONE_LAYER: dict[str, Any] = {"num_layers": 1, "norm": "pre"}
EMBEDDING = {"embedding": {"norm": True, "segments": 2}}
# As many kinds of tensors as a family can have.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "encoder_decoder": ("encoder_decoder", {"positions": "learned", "tied_output": False, "output_bias": True}),
    "separate embeddings": ("encoder_decoder", {"shared_embeddings": False, "positions": "relative_buckets"}),
    "decoder_only": ("decoder_only", {"positions": "learned", "tied_output": False}),
    "buckets": ("decoder_only", {"positions": "relative_buckets"}),
    "masked": ("encoder_only", {"head": "masked", "convolution": 3, **EMBEDDING}),
    "classes": ("encoder_only", {"head": "classes", "num_labels": 3, "pooler": True, "positions": "relative_buckets"}),
    "additive": ("encoder_only", {"head": "none", "stack": {"attention": {"scoring": "additive"}}}),
}


@pytest.mark.parametrize(("family", "changes"), MODELS.values(), ids=MODELS)
def test_every_tensor_that_is_missing_is_named_as_in_the_file(
    tmp_path: Path, family: str, changes: dict[str, Any]
) -> None:
    folder = save(tmp_path, family, family_settings(family, changes, **ONE_LAYER))
    file = folder / "model.safetensors"
    tensors = load_file(file)
    for name in tensors:
        assert stored_name(family, engine_name(family, name)) == name
        save_file({other: each for other, each in tensors.items() if other != name}, file)
        with pytest.raises(UserError) as raised:
            core_model(folder)
        assert str(raised.value).endswith(f"config.json: {name} is missing")


@pytest.mark.parametrize("family", ["encoder_decoder", "decoder_only", "encoder_only"])
@pytest.mark.parametrize("added", ["x" * 97, "norm.x", "embedding.table.weight.x", "source_embedding.norm." + "x" * 97])
def test_a_tensor_too_many_is_named_as_in_the_file(tmp_path: Path, family: str, added: str) -> None:
    folder = save(tmp_path, family, family_settings(family, **ONE_LAYER))
    file = folder / "model.safetensors"
    tensors = load_file(file)
    save_file({**tensors, added: next(iter(tensors.values())).clone()}, file)
    with pytest.raises(UserError) as raised:
        core_model(folder)
    assert str(raised.value).endswith(f"config.json: {added[:80]} is not part of the model")
