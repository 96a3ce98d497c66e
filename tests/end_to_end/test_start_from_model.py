"""`heedful train ... --from MODEL`: its vocabulary, its weights and its settings, with new data."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
from safetensors.torch import load_file
from tokenizers import decoders, models, pre_tokenizers, trainers

from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.families import FAMILIES
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.recurrent import RecurrentConfig, RecurrentStackConfig
from heedful.settings.stack import StackConfig
from heedful.settings.xlnet import XLNetConfig
from heedful.text.special_tokens import SpecialTokens
from heedful.text.tokenizer import Tokenizer

pytestmark = pytest.mark.slow

STACK = StackConfig(
    num_layers=1, dropout=0.1, attention=AttentionConfig(num_heads=3), feed_forward=FeedForwardConfig(29)
)
TRAINING = ["--set=training.batches={tokens_per_step=640, tokens_per_batch=320}", "--set=training.machine.workers=2"]
TRAINING += ["--set=training.saving={validations=1, checkpoint_seconds=0.0}"]


def foreign_tokenizer() -> Tokenizer:
    """Subwords whose spaces are spelt as those of SentencePiece, with the special tokens of Marian's places."""
    engine = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    engine.decoder = decoders.Metaspace()
    special = ["</s>", "<unk>"]
    engine.train_from_iterator(
        ["abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ one two"],
        trainers.BpeTrainer(vocab_size=70, special_tokens=special),
    )
    engine.add_special_tokens(["<pad>"])
    pad = engine.token_to_id("<pad>")
    return Tokenizer.from_json(engine.to_str(), SpecialTokens(pad=pad, start=pad, end=0, unknown=1))


def save(folder: Path, family: str, task: str, settings: Any, tokenizer: Tokenizer | None) -> Path:
    torch.manual_seed(3)
    model = FAMILIES[family].build(settings)
    languages = {"source_language": "en", "target_language": "de"} if task == "translation" else {}
    save_model_folder(folder, model, tokenizer, ModelConfig(family, task, settings, **languages), "card")
    return folder


def start_model(folder: Path, kind: str) -> Path:
    """A small model with random weights, as an earlier run or an import leaves it."""
    if kind == "imported":
        tokenizer = foreign_tokenizer()
        settings: Any = EncoderDecoderConfig(
            tokenizer.vocabulary_size + 5, 12, 31, encoder=STACK, decoder=STACK, special_tokens=tokenizer.special_tokens
        )
        return save(folder, "encoder_decoder", "translation", settings, tokenizer)
    characters = kind == "xlnet"
    texts = ["red dog one two"]
    tokenizer = Tokenizer.of_characters(texts) if characters else Tokenizer.train(texts, 270)
    size = tokenizer.vocabulary_size
    if kind == "encoder_decoder":
        settings = EncoderDecoderConfig(size, 12, 31, encoder=STACK, decoder=STACK)
    elif kind == "recurrent":
        stack = RecurrentStackConfig(1)
        settings = RecurrentConfig(size, 12, 14, 31, encoder=stack, decoder=stack)
    elif kind == "decoder_only":
        settings = DecoderOnlyConfig(size, 12, 31, stack=STACK, special_tokens=tokenizer.special_tokens)
    else:
        settings = XLNetConfig(
            size, 12, max_length=31, memory_length=7, stack=STACK, special_tokens=tokenizer.special_tokens
        )
    task = "translation" if kind in ("encoder_decoder", "recurrent") else "language_model"
    return save(folder, kind, task, settings, tokenizer)


@pytest.fixture
def job(tmp_path: Path, make_sentences) -> Callable[[str], list[str]]:
    lines = make_sentences(120, seed=5, longest=5)
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\t{line.upper()}\n" for line in lines))
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")

    def arguments(kind: str) -> list[str]:
        if kind in ("decoder_only", "xlnet"):
            return ["train", "language-model", "--text", str(tmp_path / "text.txt"), *TRAINING]
        return ["train", "translation", "--tsv", str(tmp_path / "pairs.tsv"), *TRAINING]

    return arguments


@pytest.mark.parametrize("kind", ["encoder_decoder", "recurrent", "decoder_only", "xlnet", "imported"])
def test_a_run_takes_over_the_vocabulary_the_weights_and_the_settings(
    tmp_path: Path, run: Callable, job: Callable, kind: str
) -> None:
    start, out = start_model(tmp_path / "start", kind), tmp_path / "out"
    # Steps of no length: what comes out is what went in.
    still = ["--steps", "2", "--set=training.schedule.learning_rate=0.0"]
    said = run(*job(kind), "--from", str(start), "--out", str(out), *still).stderr.decode()
    assert "its tokenizer and all weights" in " ".join(said.split())
    assert (out / "tokenizer.json").read_bytes() == (start / "tokenizer.json").read_bytes()
    before, after = (json.loads((folder / "config.json").read_text()) for folder in (start, out))
    lines, document = after["training_lines"], after["document"]  # those of the new data
    assert (lines is not None) == (after["task"] == "translation")
    assert (document == "file") == (after["task"] == "language_model")
    own = {"heedful_version": after["heedful_version"], "training_lines": lines, "document": document}
    assert after == {**before, **own}
    weights = load_file(start / "model.safetensors")
    found = load_file(out / "model.safetensors")
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[name], weights[name]) for name in weights)
    examples = next(
        json.loads(line)["examples"]
        for line in (out / "run" / "metrics.jsonl").read_text().splitlines()
        if '"validation"' in line
    )
    if kind not in ("xlnet", "decoder_only"):
        assert examples[0]["source"].upper().replace(" ", "") == examples[0]["reference"].replace(" ", "")


def test_the_rate_of_fine_tuning_is_smaller_printed_saved_and_can_be_set(
    tmp_path: Path, run: Callable, job: Callable
) -> None:
    start = start_model(tmp_path / "start", "decoder_only")
    command = [*job("decoder_only"), "--from", str(start), "--steps", "1", "--out"]
    said = run(*command, str(tmp_path / "out")).stderr.decode()
    assert "0.0033333" in said and "warm-up" in said
    schedule = json.loads((tmp_path / "out" / "run" / "config.json").read_text())
    schedule = schedule["saved"]["resolved"]["training"]["schedule"]
    assert (schedule["learning_rate"], schedule["warmup_share"]) == (0.0033333, 0.05)
    run(*command, str(tmp_path / "other"), "--set=training.schedule={learning_rate=0.5, warmup_share=0.5}")
    schedule = json.loads((tmp_path / "other" / "run" / "config.json").read_text())
    assert schedule["saved"]["resolved"]["training"]["schedule"]["learning_rate"] == 0.5


def test_a_model_that_does_not_fit_is_refused_in_words(tmp_path: Path, run: Callable, job: Callable) -> None:
    language = start_model(tmp_path / "language", "decoder_only")
    translation = start_model(tmp_path / "translation", "encoder_decoder")
    bare = save(
        tmp_path / "bare",
        "encoder_decoder",
        "translation",
        EncoderDecoderConfig(270, 12, 31, encoder=STACK, decoder=STACK),
        None,
    )

    def refused(kind: str, start: Path, *more: str) -> str:
        arguments = [*job(kind), "--from", str(start), "--steps", "1", "--out", str(tmp_path / "out"), *more]
        return " ".join(run(*arguments, code=2).stderr.decode().split())

    said = refused("encoder_decoder", language)
    assert "of the family 'decoder_only'" in said and "encoder_decoder or recurrent" in said
    assert "decoder_only or xlnet" in refused("decoder_only", translation)
    assert "no tokenizer.json" in refused("encoder_decoder", bare)
    assert "not 'recurrent'" in refused("encoder_decoder", translation, "--family", "recurrent")
    assert "the weights do not fit" in refused("encoder_decoder", translation, "--set=model.encoder.num_layers=2")
    assert "there is no model folder" in refused("encoder_decoder", tmp_path / "nowhere")
    assert "--tokenizer" in refused("decoder_only", language, "--tokenizer", "characters")


def test_killed_and_resumed_from_the_same_model_wherever_it_lies(tmp_path: Path, run: Callable, job: Callable) -> None:
    start = start_model(tmp_path / "start", "encoder_decoder")

    def command(out: str, start: Path) -> list[str]:
        return [*job("encoder_decoder"), "--from", str(start), "--steps", "10", "--out", str(tmp_path / out)]

    run(*command("whole", start))
    process = subprocess.Popen([sys.executable, "-m", "heedful", *command("killed", start)], stderr=subprocess.DEVNULL)
    metrics = tmp_path / "killed" / "run" / "metrics.jsonl"
    while not (metrics.exists() and metrics.read_text().count('"train"') >= 4):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.001)
    process.kill()
    process.wait()
    moved = shutil.move(start, tmp_path / "moved")
    other = start_model(tmp_path / "other", "encoder_decoder")
    weights = (other / "model.safetensors").read_bytes()
    (other / "model.safetensors").write_bytes(weights[:-4] + bytes(4))
    said = run(*command("killed", other), code=2).stderr.decode()
    assert "is not the model that the run" in " ".join(said.split())
    assert b"continuing after step" in run(*command("killed", moved)).stderr
    for name in ("model.safetensors", "config.json", "run/checkpoints/step-000000010/model.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
