"""Models that others trained: `make test-weights` fetches them by name and says where they are."""

import os
from pathlib import Path

import pytest
import torch

from heedful.interop.huggingface import import_folder

WEIGHTS = Path(os.environ.get("HEEDFUL_WEIGHTS", ""))
pytestmark = pytest.mark.skipif(
    not os.environ.get("HEEDFUL_WEIGHTS"), reason="needs trained weights, which `make test-weights` installs"
)
SENTENCES = ["This is an example sentence.", "Each sentence is converted", "", "Ein Satz auf Deutsch mit Ümläuten."]
SENTENCES += ["word " * 200]


@torch.inference_mode()
def test_gpt2_of_microbes(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    reference = transformers.GPT2LMHeadModel.from_pretrained(
        WEIGHTS / "mgm" / "resources" / "general_model", weights_only=True
    ).eval()
    reference.save_pretrained(tmp_path / "theirs")  # as safetensors
    remarks = import_folder(tmp_path / "theirs", tmp_path / "ours").remarks
    assert "no tokenizer.json" in remarks[0]
    from heedful.model_folder import load_model_folder

    ours = load_model_folder(tmp_path / "ours").network
    ids = torch.randint(4, 9669, (3, 211), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(ours(ids), reference(ids).logits, atol=1e-4, rtol=1e-4)
