"""An XLNet is trained, saved, loaded and used."""

from pathlib import Path

import torch

import heedful
from heedful.model_folder import load_model_folder

STEPS = 10
MODEL = {
    "width": 32,
    "max_length": 48,
    "memory_length": 16,
    "stack": {"num_layers": 2, "attention": {"num_heads": 2, "dropout": 0.1}, "feed_forward": {"inner_width": 48}},
}
TRAINING = {
    "batches": {"tokens_per_step": 640, "tokens_per_batch": 320},
    "saving": {"validations": 2, "checkpoint_seconds": 0.0},
    "machine": {"workers": 2, "threads": 1},
}


def test_train_load_generate_and_score(tmp_path: Path, run, make_sentences) -> None:
    book, out = tmp_path / "book.txt", tmp_path / "model"
    book.write_text("\n".join(make_sentences(400, seed=5)) + "\n")
    settings = {"model": MODEL, "training": {**TRAINING, "limit": {"steps": STEPS}}}
    data = heedful.TextData(text=(str(book),), tokenizer="characters")
    heedful.train(heedful.RunConfig(str(out), data, settings=settings, family="xlnet"))

    generated = run("generate", out, "red ", "--max-tokens", "70", "--seed", "3").stdout.decode()
    model = heedful.load(out)
    options = heedful.GenerationOptions(max_tokens=70, seed=3)
    assert model.generate("red ", options) == [generated.removesuffix("\n")]  # beyond the context of 48
    assert 1 < model.score("red dog blue sea").perplexity < 200
    assert model.generate("", heedful.GenerationOptions(max_tokens=3)) != [""]

    again = load_model_folder(out).network
    ids = torch.randint(3, 20, (2, 13), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        assert torch.equal(again.hidden(ids), model.model.hidden(ids))
