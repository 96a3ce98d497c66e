"""Recurrent models by the same commands: training, translating, alignment."""

from pathlib import Path

import pytest

import heedful

SETTINGS = [
    "--family=recurrent",
    "--set=model={width=64, hidden_width=64, encoder={num_layers=1, dropout=0.0}, decoder={dropout=0.0}}",
    "--set=training={batches={tokens_per_step=1000}, saving={validations=1}, label_smoothing=0.0}",
    "--set=training.schedule.learning_rate=0.008",
]


def train(run, folder: Path, lines: list[str], *arguments: str) -> Path:
    folder.mkdir(exist_ok=True)
    text = folder / "lines.txt"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    run("train", "translation", "--source", text, "--target", text, "--out", folder / "model", *SETTINGS, *arguments)
    return folder / "model"


@pytest.fixture(scope="module")
def copy_by_lstm(run, make_sentences, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(run, tmp_path_factory.mktemp("recurrent"), make_sentences(6000, seed=1, longest=6), "--steps", "250")


def test_copying_and_its_alignment_are_learned(copy_by_lstm: Path, make_sentences) -> None:
    lines = make_sentences(200, seed=3, longest=6)
    translations = heedful.load(copy_by_lstm).translate(lines, beam=1, alignment=True)
    right = sum(each.text == line for each, line in zip(translations, lines, strict=True))
    assert right >= 0.9 * len(lines)
    pairs = [pair for each in translations for pair in each.alignment]
    assert sum(source == target for source, target in pairs) >= 0.9 * len(pairs)


@pytest.mark.filterwarnings("ignore::heedful.tasks.translation.answers.LongTextWarning")
def test_text_and_scores_are_the_same_to_the_last_bit_at_any_batch_size(copy_by_lstm: Path, make_sentences) -> None:
    model, lines = heedful.load(copy_by_lstm), ["", *make_sentences(100, seed=5, longest=13)]
    expected = model.translate(lines, beam=2, nbest=2, batch_size=64)
    for size in (1, 7):
        assert model.translate(lines, beam=2, nbest=2, batch_size=size) == expected


def test_the_command_translates_and_aligns(run, copy_by_lstm: Path) -> None:
    output = run("translate", copy_by_lstm, "--alignment", stdin=b"red dog cat\n\nsun\n").stdout
    assert output == b"red dog cat\t0-0 1-1 2-2\n\nsun\t0-0\n"
