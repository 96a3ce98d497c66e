"""The line contract of `heedful translate`, tried from outside."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import heedful
from heedful.layers import int8_linear
from heedful.tasks.computing import Computing, Engine, Precision
from heedful.tasks.loading import load_translator


def test_n_lines_in_n_lines_out(run, copy_model: Path) -> None:
    result = run("translate", copy_model, stdin=b"red dog\n\n\nblue sea\n")
    assert result.stdout == b"red dog\n\n\nblue sea\n"
    assert result.stderr == b""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", b""),
        (b"\n", b"\n"),
        (b"red dog", b"red dog\n"),
        (b"red dog\r\nblue sea\r\n", b"red dog\nblue sea\n"),
        (b"   \t \nred\n", b"\nred\n"),
    ],
)
def test_only_newlines_end_lines(run, copy_model: Path, text: bytes, expected: bytes) -> None:
    assert run("translate", copy_model, stdin=text).stdout == expected


def test_other_line_breaks_within_a_line_do_not_end_it(run, copy_model: Path) -> None:
    text = "red\u2028dog\x0bcat\x85sun\x0c\x1esea\rmoon\n\x00\nblue sea\n"
    output = run("translate", copy_model, stdin=text.encode()).stdout.decode("utf-8")
    assert output.count("\n") == 3
    assert len(output.splitlines()) == 3  # splitlines knows all kinds of line breaks: none is left
    assert output.endswith("\nblue sea\n")


def test_invalid_utf8_is_replaced_named_and_no_failure(run, copy_model: Path) -> None:
    result = run("translate", copy_model, stdin=b"red dog\nblue \xff\xfe sea\nsun\n")
    assert result.stdout.decode("utf-8").count("\n") == 3
    assert b"line 2 is not valid UTF-8" in result.stderr
    assert b"line 1" not in result.stderr


def test_a_line_that_is_too_long_is_translated_in_pieces(run, copy_model: Path) -> None:
    line = " ".join(["red dog blue sea"] * 130)
    result = run("translate", copy_model, "--max-length", "300", stdin=f"sun\n{line}\nmoon\n".encode())
    lines = result.stdout.decode().split("\n")
    assert (lines[0], lines[2], len(lines)) == ("sun", "moon", 4)
    assert b"line 2 has 520 subwords without a sentence end, and the model takes 256: translated in " in result.stderr
    assert b"pieces, cut within the sentence, and some of it may be lost" in result.stderr
    assert len(lines[1].split()) >= 0.95 * len(line.split())  # pieces like the lines of the training lose nothing


def test_nbest_scores_and_alignment_are_columns(run, copy_model: Path) -> None:
    result = run("translate", copy_model, "--nbest", 3, "--scores", "--alignment", stdin=b"red dog cat\n\nsun\n")
    rows = [line.split("\t") for line in result.stdout.decode().split("\n")[:-1]]
    assert len(rows) == 9
    assert rows[0][0] == "red dog cat"
    assert rows[0][2] == "0-0 1-1 2-2"
    assert float(rows[0][1]) >= float(rows[1][1]) >= float(rows[2][1])
    assert rows[3] == rows[4] == rows[5] == [""]


@pytest.mark.slow
@pytest.mark.parametrize("engine", get_args(Engine)[1:])
def test_text_and_scores_are_the_same_at_any_batch_size_and_worker_count(
    run, copy_model: Path, make_sentences, engine: Engine
) -> None:
    text = ("\n".join(make_sentences(520, seed=5, longest=13)) + "\n").encode()
    options = ["--engine", engine, "--scores", "--nbest", 2, "--beam", 2]
    outputs = {
        (size, workers): run(
            "translate", copy_model, *options, "--batch-size", size, "--workers", workers, stdin=text
        ).stdout
        for size, workers in [(1, 2), (7, 1), (64, 1), (64, 2)]
    }
    assert len(set(outputs.values())) == 1
    assert next(iter(outputs.values())).count(b"\n") == 1040


@pytest.mark.slow
@pytest.mark.parametrize("engine", get_args(Engine)[1:])
def test_samples_do_not_depend_on_batch_size_or_workers_either(
    run, copy_model: Path, make_sentences, engine: Engine
) -> None:
    text = ("\n".join(make_sentences(700, seed=6)) + "\n").encode()
    options = ["--engine", engine, "--sample", "--temperature", 2.0, "--seed", 7]
    first = run("translate", copy_model, *options, "--batch-size", 5, "--workers", 1, stdin=text).stdout
    second = run("translate", copy_model, *options, "--batch-size", 64, "--workers", 2, stdin=text).stdout
    assert first == second
    other = run("translate", copy_model, *options[:-1], 8, "--workers", 1, stdin=text).stdout
    assert other != first


@pytest.mark.parametrize("engine", get_args(Engine)[1:])
def test_a_line_is_answered_before_the_end_of_the_input(copy_model: Path, engine: Engine) -> None:
    command = [sys.executable, "-m", "heedful", "translate", str(copy_model), "--engine", engine]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        for line in (b"red dog\n", b"blue sea\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == line
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_a_reader_that_goes_away_is_no_error(copy_model: Path) -> None:
    if os.name == "nt":
        pytest.skip("no shell pipes like these on Windows")
    command = (
        f"yes 'red dog' | head -n 5000 | '{sys.executable}' -m heedful translate '{copy_model}' --beam 1 | head -n 1"
    )
    result = subprocess.run(command, shell=True, capture_output=True, timeout=120)
    assert result.stdout == b"red dog\n"
    assert b"Traceback" not in result.stderr


def test_files_in_and_out(run, copy_model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"red dog\n\nsun\n"))
    run("translate", copy_model, "--input", tmp_path / "in.gz", "--output", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_bytes() == b"red dog\n\nsun\n"
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("writing")] == []


def test_a_forced_prefix(run, copy_model: Path) -> None:
    output = run("translate", copy_model, "--prefix", "moon", stdin=b"red dog\nsun\n").stdout
    assert all(line.startswith(b"moon") for line in output.splitlines())


def test_a_hypothesis_score_is_the_score_of_its_text(copy_model: Path, make_sentences) -> None:
    model = heedful.load(copy_model)
    sources = make_sentences(53, seed=17)
    translations = model.translate(sources, beam=4, nbest=2)
    hypotheses = [(source, each) for source, found in zip(sources, translations, strict=True) for each in found.nbest]
    scores = model.score([source for source, _ in hypotheses], [each.text for _, each in hypotheses])
    same = [
        (scored, each)
        for scored, (_, each) in zip(scores, hypotheses, strict=True)
        if [model.tokenizer.token_text(i) for i in model.tokenizer.encode(each.text)] == each.tokens
    ]
    assert len(same) > 60  # others are spelt with subwords that their text would not be cut into
    for scored, hypothesis in same:
        assert scored.token_scores == pytest.approx(hypothesis.token_scores, abs=1e-4)
        assert scored.score == pytest.approx(hypothesis.score, abs=1e-4)


def test_input_is_cleaned_as_training_data_is(run, copy_model: Path) -> None:
    text = b"\xef\xbb\xbfred dog\nred\tdog\n  red\x00dog \n"
    assert run("translate", copy_model, stdin=text).stdout == b"red dog\n" * 3


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in the file system")
def test_a_pipe_as_input_file_loses_nothing(copy_model: Path, tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m heedful translate '{copy_model}' --beam 1 --input <(seq 5 | sed 's/.*/red dog/')"
    result = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)
    assert result.stdout == b"red dog\n" * 5, result.stderr


def test_a_damaged_input_file_is_an_error_and_no_hang(run, copy_model: Path, tmp_path: Path) -> None:
    packed = gzip.compress(("red dog\n" * 900).encode())
    (tmp_path / "cut.gz").write_bytes(packed[: len(packed) // 2])
    result = run("translate", copy_model, "--beam", 1, "--input", tmp_path / "cut.gz", code=2)
    assert b"damaged or cut short" in result.stderr


@pytest.mark.parametrize("engine", get_args(Engine)[1:])
def test_weights_of_8_bits_translate_the_same(
    copy_model: Path, make_sentences, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    monkeypatch.setattr(int8_linear, "SMALLEST_RATIO", 0)  # the layers of this model are small
    lines = make_sentences(53, 29)
    plain, rounded = (
        load_translator(copy_model, Computing("cpu", engine, precision)) for precision in get_args(Precision)
    )
    found, expected = ([each.text for each in model.translate(lines)] for model in (rounded, plain))
    assert sum(a == b for a, b in zip(found, expected, strict=True)) >= 50
    assert [each.text for each in rounded.translate(lines, batch_size=1)] == found
    # A word may attend to two others all but equally; of hundreds, few do.
    aligned = [[each.alignment for each in model.translate(lines, alignment=True)] for model in (rounded, plain)]
    pairs = [pair for one, other in zip(*aligned, strict=True) for pair in zip(one, other, strict=False)]
    assert len(pairs) > 200 and sum(one == other for one, other in pairs) >= 0.99 * len(pairs)
    shares = [model.attention("red dog", "red dog").maps[-1].weights for model in (rounded, plain)]
    assert np.abs(shares[0] - shares[1]).max() < 0.1
    scores = [sum(each.log_probability for each in model.score(lines, lines)) for model in (rounded, plain)]
    assert scores[0] == pytest.approx(scores[1], abs=0.05 * len(lines))


def test_the_precision_is_chosen_by_an_option(run, copy_model: Path) -> None:
    assert run("translate", copy_model, "--precision", "int8", stdin=b"red dog\n").stdout == b"red dog\n"


def test_a_shortlist(run, copy_model: Path, make_sentences, tmp_path: Path) -> None:
    folder, text = tmp_path / "model", tmp_path / "text.txt"
    shutil.copytree(copy_model, folder, ignore=shutil.ignore_patterns("run"))
    text.write_text("".join(f"{line}\n" for line in make_sentences(211, 5)), encoding="utf-8")
    missing = run("translate", folder, "--shortlist", stdin=b"red dog\n", code=2)
    assert b"make one with heedful shortlist" in missing.stderr
    run("shortlist", folder, "--source", text, "--target", text)
    plain = run("translate", folder, "--input", text)
    for engine in ("core", "torch"):
        found = run("translate", folder, "--shortlist", "--engine", engine, "--input", text)
        assert found.stdout == plain.stdout
    both = run("translate", folder, "--shortlist", "--prefix", "red", stdin=b"red dog\n", code=2)
    assert b"leave out --shortlist" in both.stderr


SENTENCES = ["red dog.", "Blue sea and sun!", "One two three?", "7 birds fly."]


def test_a_paragraph_is_its_sentences_translated_one_by_one(run, untrained_model: Path) -> None:
    alone = run("translate", untrained_model, stdin="\n".join(SENTENCES).encode()).stdout.decode().split("\n")[:-1]
    lines = [" ".join(SENTENCES[:2]), " ".join(SENTENCES), " ".join(SENTENCES * 30)]
    found = run("translate", untrained_model, "--verbose", "--scores", stdin="\n".join(lines).encode())
    texts = [line.split("\t")[0] for line in found.stdout.decode().split("\n")[:-1]]
    assert texts == [" ".join(alone[:2]), " ".join(alone), " ".join(alone * 30)]
    assert b"heedful: line 2 was split into 4 pieces: red dog. | Blue sea and sun! |" in found.stderr
    whole = run("translate", untrained_model, "--split", "none", stdin=lines[0].encode()).stdout.decode()
    assert whole != texts[0] + "\n"


def test_the_model_folder_records_the_lines_of_its_training(run, copy_model: Path) -> None:
    lines = json.loads((copy_model / "config.json").read_text())["training_lines"]
    assert 1 <= lines["subwords_median"] < lines["subwords_99"] <= lines["subwords_most"] < 30
    assert [lines[f"sentences_{each}"] for each in ("median", "99", "most")] == [1, 1, 1]
    assert f"up to {lines['subwords_99']}, longest" in run("info", copy_model).stdout.decode()


def test_a_line_longer_than_the_training_is_warned_of(run, copy_model: Path) -> None:
    most = json.loads((copy_model / "config.json").read_text())["training_lines"]["subwords_most"]
    found = run("translate", copy_model, stdin=b"red dog\n" + b"red dog " * 20 + b"\n")
    expected = f"heedful: line 2 has 40 subwords without a sentence end, but the longest training line had {most}: "
    assert expected in found.stderr.decode() and b"line 1" not in found.stderr
    assert len(found.stdout.splitlines()[1].split()) >= 38
    whole = run("translate", copy_model, "--split", "none", stdin=b"red dog " * 20 + b"\n").stderr.decode()
    assert f"line 1 has 40 subwords, but the longest training line had {most}: some of it may be lost" in whole
