"""A user's mistake is one clear line on standard error and exit code 2, without a traceback."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from heedful.cli.main import main
from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.decoder_only import DecoderOnly
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.text.tokenizer import Tokenizer
from mutations import unseal


def error(run, *arguments, **options) -> str:
    result = run(*arguments, code=2, **options)
    text = result.stderr.decode()
    assert text.splitlines()[-1].startswith("heedful: "), text
    # Before the message there is nothing but what was being done.
    assert all(line.endswith(" ...") for line in text.splitlines()[:-1]), text
    return text


def test_a_missing_model(run, tmp_path: Path) -> None:
    assert "there is no model folder" in error(run, "translate", tmp_path / "nothing", stdin=b"a\n")


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["missing", "empty", "garbage"])
def test_a_broken_model(run, copy_model: Path, tmp_path: Path, file: str, damage: str) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(copy_model, broken, ignore=shutil.ignore_patterns("run"))
    (broken / file).unlink()
    if damage != "missing":
        (broken / file).write_bytes(b"" if damage == "empty" else b"{]garbage")
    assert file in error(run, "translate", broken, stdin=b"red dog\n")


def test_weights_of_another_model(run, copy_model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(copy_model, broken, ignore=shutil.ignore_patterns("run"))
    config = json.loads((broken / "config.json").read_text())
    config["model"]["decoder"]["num_layers"] = 3
    (broken / "config.json").write_text(json.dumps(config))
    assert "config.json does not have the settings that model.safetensors was written" in error(run, "info", broken)
    assert "missing decoder.2." in error(run, "info", unseal(broken))


def test_a_misspelt_setting_names_the_nearest(run, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("a\n")
    files = ["--source", tmp_path / "a.en", "--target", tmp_path / "a.en", "--out", tmp_path / "out"]
    text = error(run, "train", "translation", *files, "--set", "model.decoder.num_layer=3")
    assert "unknown setting 'model.decoder.num_layer': did you mean 'num_layers'" in text
    text = error(run, "train", "translation", *files, "--set", "trianing.seed=3")
    assert "did you mean 'training'" in text
    assert "did you mean 'translation_tiny'" in error(
        run, "train", "translation", *files, "--preset", "translation_tyni"
    )
    assert not (tmp_path / "out").exists()


def test_unequal_line_counts_name_both_files(run, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("a\nb\nc\n")
    (tmp_path / "a.de").write_text("a\nb\n")
    text = error(
        run,
        "train",
        "translation",
        "--source",
        tmp_path / "a.en",
        "--target",
        tmp_path / "a.de",
        "--out",
        tmp_path / "o",
    )
    assert "a.en" in text
    assert "a.de" in text
    assert "3" in text
    assert "2" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "missing.en", "--target", "missing.de", "--out", "o"], "missing.en"),
        (["--source", "a.en", "--out", "o"], "--target"),
        (["--out", "o"], "no data"),
        (["--source", "a", "--target", "b"], "--out"),
        (["--source", "a", "--target", "b", "--tsv", "c", "--out", "o"], "not both"),
        (["--source", "a", "--target", "b", "--out", "o", "--budget", "soon"], "is not a time"),
        (["--source", "a", "--target", "b", "--out", "o", "--steps", "3", "--budget", "5m"], "only one of"),
    ],
)
def test_wrong_training_commands(run, arguments: list[str], message: str) -> None:
    assert message in error(run, "train", "translation", *arguments)


def test_empty_files(run, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("")
    (tmp_path / "a.de").write_text("")
    files = ["--source", tmp_path / "a.en", "--target", tmp_path / "a.de", "--out", tmp_path / "o"]
    assert "empty" in run("train", "translation", *files, code=2).stderr.decode()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--beam", "0", "beam"),
        ("--nbest", "9", "nbest"),
        ("--batch-size", "0", "--batch-size"),
        ("--workers", "0", "--workers"),
    ],
)
def test_wrong_translation_options(run, copy_model: Path, option: str, value: str, message: str) -> None:
    assert message in error(run, "translate", copy_model, option, value, stdin=b"a\n")


def test_ctrl_c_is_one_line_in_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("heedful.tasks.loading.load", interrupt)
    with pytest.raises(SystemExit, match="130"):
        main(["inspect", str(tmp_path), "red dog"])
    assert capsys.readouterr().err.strip() == "heedful: interrupted"


def test_a_benchmark_of_a_model_that_is_none(run, tmp_path: Path) -> None:
    assert "there is no model folder" in error(run, "bench", "translation", "--model", tmp_path / "nothing")
    tokenizer, settings = Tokenizer.train(["red dog"], 263), DecoderOnlyConfig(263, 24, 29)
    config = ModelConfig("decoder_only", "language_model", settings)
    save_model_folder(tmp_path / "other", DecoderOnly(settings), tokenizer, config, "card")
    assert "is not a translation model" in error(run, "bench", "translation", "--model", tmp_path / "other")


def test_an_unknown_command_names_the_nearest(run) -> None:
    assert "did you mean 'translate'" in error(run, "transalte")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["--set", "model=5"], "expected a table"),
        (["--set", "data=5"], "expected a table"),
        (["--set", "preset=5"], "expected a text in quotes"),
        (["--set", "model.encoder.attention.num_heads=7"], "cannot be split over 7 heads"),
        (["--set", "training.optimizer.beta1=2.0"], "beta1 is 2.0"),
        (
            ["--preset", "translation_base", "--set", "training.schedule.kind=decay"],
            "needs training.schedule.learning_rate",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_before_any_work(run, tmp_path: Path, settings, message: str) -> None:
    for name in ("a.en", "a.de"):
        (tmp_path / name).write_text("red\ndog\n")
    files = ["--source", tmp_path / "a.en", "--target", tmp_path / "a.de", "--out", tmp_path / "out"]
    assert message in error(run, "train", "translation", *files, *settings)
    assert not (tmp_path / "out").exists()


def test_a_file_that_cannot_be_written(run, copy_model: Path, tmp_path: Path) -> None:
    assert "cannot write" in error(run, "translate", copy_model, "--output", tmp_path / "no" / "out", stdin=b"red\n")


def test_a_pattern_for_several_input_files(run, copy_model: Path, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("red\n")
    assert "stands for 2 files" in error(run, "translate", copy_model, "--input", tmp_path / "*.txt")


@pytest.mark.skipif(os.name == "nt", reason="pipes of Windows end in another way")
@pytest.mark.parametrize(("engine", "workers"), [("core", "2"), ("torch", "1"), ("torch", "2")])
def test_a_reader_that_goes_away_is_no_mistake(
    untrained_model: Path, tmp_path: Path, engine: str, workers: str
) -> None:
    file = tmp_path / "in.txt"
    file.write_text("".join(f"red dog {number}\n" for number in range(600)))
    options = ["--engine", engine, "--workers", workers, "--beam", "1", "--max-length", "3", "--input", str(file)]
    command = [sys.executable, "-m", "heedful", "translate", str(untrained_model), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows does not close what is inherited")
@pytest.mark.parametrize("verb", [["info"], ["translate", "--max-length", "3", "red dog"], ["score", "red\tdog"]])
def test_an_answer_without_standard_output_is_not_lost_silently(verb: list[str], untrained_model: Path) -> None:
    command = [sys.executable, "-m", "heedful", verb[0], str(untrained_model), *verb[1:]]
    result = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE)
    assert result.returncode == 2
    assert result.stderr.startswith(b"heedful: standard output is closed") and result.stderr.count(b"\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows does not close what is inherited")
@pytest.mark.parametrize("verb", ["translate", "score", "evaluate", "train"])
def test_closed_standard_input_is_not_taken_for_an_empty_one(verb: str, untrained_model: Path, tmp_path: Path) -> None:
    arguments = {
        "evaluate": [untrained_model, "--tsv", "-"],
        "train": ["translation", "--tsv", "-", "--out", tmp_path / "out"],
    }
    command = [sys.executable, "-m", "heedful", verb, *arguments.get(verb, [untrained_model])]
    result = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", *map(str, command)], capture_output=True)
    assert result.returncode == 2 and not result.stdout
    assert result.stderr.startswith(b"heedful: standard input is closed") and result.stderr.count(b"\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are Unicode")
def test_names_that_are_not_text_are_shown_on_one_line(untrained_model: Path, tmp_path: Path) -> None:
    for arguments, named in (
        ([b"no\xff\n"], b"model folder no\\xff\\n"),
        ([untrained_model, "--input", b"a\rb\xfe"], b"a\\rb\\xfe"),
    ):
        command = [sys.executable, "-m", "heedful", "translate", *arguments]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True)
        assert result.returncode == 2 and result.stderr.count(b"\n") == 1
        assert named in result.stderr, result.stderr


@pytest.mark.parametrize("option", ["--output", "--out"])
def test_an_output_file_in_a_folder_that_does_not_exist(
    run, untrained_model: Path, tmp_path: Path, option: str
) -> None:
    out = tmp_path / "no" / "out"
    command = ["translate", untrained_model] if option == "--output" else ["inspect", untrained_model, "red"]
    text = error(run, *command, option, out, stdin=b"red\n")
    assert text == f"heedful: cannot write {out}: there is no folder {out.parent}\n"


def test_labels_in_brackets_are_shown_as_they_are(run, tmp_path: Path) -> None:
    rows = [
        f"{label}\t{word} {number}" for number in range(60) for label, word in (("[/a]", "red"), ("[bold]", "blue"))
    ]
    (tmp_path / "data.tsv").write_text("\n".join(rows) + "\n")
    shown = run("train", "classifier", "--data", tmp_path / "data.tsv", "--out", tmp_path / "m", "--steps", 1).stderr
    assert b"[/a]" in shown and b"[bold]" in shown
    assert b"[/a], [bold]" in run("info", tmp_path / "m").stdout


def test_a_length_penalty_out_of_range_is_refused(run, untrained_model: Path) -> None:
    for verb, texts in (("translate", "red dog"), ("score", "red dog\tdog")):
        told = run(verb, untrained_model, "--length-penalty", "500", texts, code=2).stderr
        assert b"length_penalty is 500.0, but must be a number from 0 to 10" in told


def test_weights_of_whole_numbers_are_refused(run, untrained_model: Path) -> None:
    file = untrained_model / "model.safetensors"
    save_file({name: tensor.to(torch.int8) for name, tensor in load_file(file).items()}, file)
    for engine in ("torch", "core"):
        told = run("translate", untrained_model, "--engine", engine, "red dog", code=2).stderr.decode()
        assert "holds 'I8', expected real numbers" in told
