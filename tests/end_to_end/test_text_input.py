"""Texts as arguments, as a file and on standard input are the same to every command that takes text."""

import gzip
import json
import lzma
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.decoder_only import DecoderOnly
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.encoder_only import EncoderOnly
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.stack import StackConfig
from heedful.text.tokenizer import Tokenizer

TEXT = "the red dog is in the sea, and the sun is blue."
ENCODERS = {
    "classification": ("classes", ("yes", "no", "maybe")),
    "tagging": ("tags", ("O", "ANIMAL")),
    "masked_language_model": ("masked", ()),
}
# Verb -> the task of its model, options that keep it quick, and two lines that it takes.
VERBS: dict[str, tuple[str, list[str], list[str]]] = {
    "translate": ("translation", ["--beam", "1", "--max-length", "5"], ["red dog", "blue sea"]),
    "score": ("translation", [], ["red dog\tblue sea", "the sun\tthe sea"]),
    "fill": ("masked_language_model", ["--top", "2"], ["the [MASK] sea", "[MASK] is [MASK]"]),
    "classify": ("classification", ["--top", "2"], ["red dog", "blue\tsea"]),
    "tag": ("tagging", [], ["red dog", "the blue sea"]),
    "embed": ("tagging", [], ["red dog", "blue sea"]),
    "generate": ("language_model", ["--lines", "--max-tokens", "5"], ["red dog", "blue sea "]),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each task, with random weights."""
    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(7)
    words = Tokenizer.train([TEXT], 283, mask=True)
    settings = {"vocabulary_size": words.vocabulary_size, "width": 16, "max_length": 61}
    small = StackConfig(num_layers=1)

    def save(task: str, family: str, network: torch.nn.Module, labels: tuple[str, ...] = ()) -> None:
        config = ModelConfig(family, task, network.config, labels=labels)
        save_model_folder(folder / task, network, words, config, "card")

    save(
        "translation",
        "encoder_decoder",
        EncoderDecoder(EncoderDecoderConfig(**settings, positions="learned", encoder=small)),
    )
    save("language_model", "decoder_only", DecoderOnly(DecoderOnlyConfig(**settings, stack=small)))
    for task, (head, labels) in ENCODERS.items():
        encoder = EncoderOnlyConfig(
            **settings, stack=small, head=head, num_labels=len(labels), special_tokens=words.special_tokens
        )
        save(task, "encoder_only", EncoderOnly(encoder), labels)
    return {each.name: each for each in folder.iterdir()}


@pytest.mark.parametrize("verb", VERBS)
def test_arguments_file_and_standard_input_are_the_same(run, models, verb: str, tmp_path: Path) -> None:
    task, options, lines = VERBS[verb]
    raw = "".join(line + "\n" for line in lines).encode()
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(raw))
    found = [
        run(verb, models[task], *lines, *options),
        run(verb, models[task], *options, "--input", tmp_path / "in.txt.gz"),
        run(verb, models[task], *options, stdin=raw),
    ]
    assert {each.stdout for each in found} == {found[0].stdout}
    assert {each.stderr for each in found} == {b""}
    assert found[0].stdout.count(b"\n") == 2


@pytest.mark.parametrize("packing", [gzip, lzma])
def test_packed_standard_input_is_refused(run, models, packing) -> None:
    said = run("translate", models["translation"], stdin=packing.compress(b"red dog\n"), code=2).stderr.decode()
    assert "standard input is a compressed file" in said and "--input" in said and said.count("\n") == 1


@pytest.mark.parametrize("verb", VERBS)
def test_as_many_lines_out_as_in(run, models, verb: str) -> None:
    task, options, (first, second) = VERBS[verb]
    invalid = second.encode() + b" \xff"
    odd = first.replace(" ", "\u2028\x0c\x85", 1)
    raw = b"\xef\xbb\xbf" + first.encode() + b"\r\n\n \t\r\n" + odd.encode() + b"\n" + invalid + b"\n\n"
    result = run(verb, models[task], *options, stdin=raw)
    lines = result.stdout.decode("utf-8").split("\n")
    assert len(lines) == 7 and lines[6] == ""
    if verb != "embed":  # whose answers are all vectors
        assert [line.strip() == "" for line in lines[:6]] == [False, True, True, False, False, True]
    assert lines[0] == run(verb, models[task], *options, first, "").stdout.decode().split("\n")[0]
    told = result.stderr.decode()
    assert "line 5 is not valid UTF-8" in told and told.count("\n") == 1


def test_an_argument_is_one_text_even_if_it_has_line_breaks_or_names_a_file(run, models, tmp_path: Path) -> None:
    assert run("tag", models["tagging"], "red\ndog", "", "sea").stdout.count(b"\n") == 3
    (tmp_path / "in.txt").write_text("red dog\nblue sea\n")
    result = run("tag", models["tagging"], tmp_path / "in.txt")
    assert f"--input {tmp_path / 'in.txt'} reads the file of that name" in result.stderr.decode()


@pytest.mark.parametrize("verb", [*VERBS, "inspect"])
def test_texts_and_a_file_are_too_much(run, models, verb: str) -> None:
    task = "translation" if verb == "inspect" else VERBS[verb][0]
    told = run(verb, models[task], "red dog", "--input", "in.txt", code=2).stderr.decode()
    assert told == "heedful: there is a text after the model, and --input too: give one of them\n"
    assert "heedful: there is no file nothing" in run(verb, models[task], "--input", "nothing", code=2).stderr.decode()


def test_a_text_as_a_whole(run, models, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("red dog\nblue sea\n")
    for verb, options in (("inspect", ["--json"]), ("generate", ["--max-tokens", "9"])):
        command = [verb, models["language_model"], *options]
        found = [
            run(*command, "red dog\nblue sea").stdout,
            run(*command, "--input", tmp_path / "in.txt").stdout,
            run(*command, stdin=b"red dog\nblue sea\n").stdout,
        ]
        assert found[0] and len(set(found)) == 1
    told = run("inspect", models["translation"], "red", "dog", code=2).stderr.decode()
    assert "there are 2 texts after the model: give one, in quotes" in told


def test_several_prompts_and_samples(run, models) -> None:
    command = ["generate", models["language_model"], "--max-tokens", "5", "--seed", "3"]
    one, other = (run(*command, prompt).stdout for prompt in ("red", "blue"))
    assert run(*command, "red", "blue").stdout == one + b"\n" + other
    lines = b"".join(b"red %d\n" % number for number in range(300))
    found = run(*command, "--lines", "--samples", "2", stdin=lines).stdout.split(b"\n")
    assert len(found) == 601
    # Drawn by the number of the line, whatever lines are computed together.
    assert found[:10] == run(*command, "--lines", "--samples", "2", stdin=lines[:30]).stdout.split(b"\n")[:10]
    told = run(*command, "red", "--interactive", code=2).stderr
    assert b"--interactive asks for prompts: give none" in told


def test_guesses_for_one_text_are_a_list_and_lines_without_a_mask_are_told_of(run, models) -> None:
    command = ["fill", models["masked_language_model"], "--top", "2"]
    groups = run(*command, "[MASK] is [MASK]").stdout.decode().split("\n\n")
    assert [len(group.strip().split("\n")) for group in groups] == [2, 2]
    result = run(*command, stdin=b"[MASK] is [MASK]\nno mask\n")
    assert result.stdout.decode() == "\t".join("\n".join(groups).split("\n")).replace("\t\t", "\t").strip() + "\n\n"
    assert "line 2 stays blank: the text has no [MASK]" in result.stderr.decode()
    (line,) = run(*command, "--json", stdin=b"[MASK] is [MASK]\n").stdout.splitlines()
    assert [len(mask) for mask in json.loads(line)] == [2, 2]


def test_pairs_to_score(run, models, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("red dog\n\nthe sun\n")
    (tmp_path / "b").write_text("blue sea\n\nthe sea\n")
    command = ["score", models["translation"]]
    files = ["--source", tmp_path / "a", "--target", tmp_path / "b"]
    pairs = run(*command, "--input", "-", stdin=b"red dog\tblue sea\n\nthe sun\tthe sea").stdout
    assert run(*command, *files).stdout == pairs and pairs.split(b"\n")[1] == b""
    assert "line 2 has no tab" in run(*command, stdin=b"red\tdog\nblue\n", code=2).stderr.decode()
    assert "give both" in run(*command, *files[:2], code=2).stderr.decode()
    long = b"red\tdog\n" * 300 + b"red\t" + b"dog " * 400 + b"\n"
    assert "pair 301 has a target of more than" in run(*command, stdin=long, code=2).stderr.decode()


def test_vectors_in_a_file_that_is_written_bit_by_bit(run, models, tmp_path: Path) -> None:
    lines = "".join(f"{TEXT[: n % 40]}\n" for n in range(700)).encode()
    rows = [json.loads(line) for line in run("embed", models["tagging"], stdin=lines).stdout.splitlines()]
    run("embed", models["tagging"], "--out", tmp_path / "v.npy", stdin=lines)
    found = np.load(tmp_path / "v.npy")
    assert found.dtype == np.float32 and found.shape == (700, 16)
    np.testing.assert_allclose(found, rows, atol=1e-7)
    run("embed", models["tagging"], "--out", tmp_path / "v.npy")
    assert np.load(tmp_path / "v.npy").shape == (0, 16)
    assert [each.name for each in tmp_path.iterdir() if each.name != "stdin"] == ["v.npy"]


def test_an_evaluation_of_pairs_in_one_file(run, models, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("red dog\n\nthe sun\n")
    (tmp_path / "b").write_text("blue sea\n\nthe sea\n")
    (tmp_path / "pairs.tsv").write_text("red dog\tblue sea\tmore\n\nthe sun\tthe sea\tand more\n")
    command = ["evaluate", models["translation"], "--json", "--beam", "1", "--workers", "1"]
    two = json.loads(run(*command, "--source", tmp_path / "a", "--reference", tmp_path / "b").stdout)
    one = json.loads(run(*command, "--tsv", tmp_path / "pairs.tsv").stdout)
    assert one["sentences"] == 2  # a blank pair stays blank
    assert {**one, "seconds": 0} == {**two, "seconds": 0}
    piped = json.loads(run(*command, "--tsv", "-", stdin=(tmp_path / "pairs.tsv").read_bytes()).stdout)
    assert {**piped, "seconds": 0} == {**two, "seconds": 0}
    sides = "--source", tmp_path / "a", "--reference", "-"
    piped = json.loads(run(*command, *sides, stdin=(tmp_path / "b").read_bytes()).stdout)
    assert {**piped, "seconds": 0} == {**two, "seconds": 0}
    (tmp_path / "bad.tsv").write_text("red dog\tblue sea\nthe sun\n")
    assert "line 2 of" in run(*command, "--tsv", tmp_path / "bad.tsv", code=2).stderr.decode()
    told = run(*command, "--tsv", "-", stdin=b"red dog\tblue sea\nthe sun\n", code=2).stderr.decode()
    assert "line 2 of standard input has fewer than two columns" in told
    told = run(*command, *sides, stdin=b"blue sea\n", code=2).stderr.decode()
    assert "standard input has 1" in told
    told = run(*command, "--source", "-", "--reference", "-", code=2).stderr.decode()
    assert "standard input can be given only once" in told
    for wrong in ([], ["--source", "a"], ["--source", "a", "--reference", "b", "--tsv", "c"]):
        told = run(*command, *wrong, code=2).stderr.decode()
        assert "give --source and --reference, or --tsv" in told


def test_a_terminal_is_told_what_is_waited_for(models) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "heedful", "translate", str(models["translation"]), "--max-length", "3"]
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(theirs)
    try:
        os.write(ours, b"red dog\n\x04")
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(ours)
    assert output.count(b"\n") == 1
    assert errors == b"heedful: reading from the terminal: one text per line; Ctrl-D ends\n"


def test_a_tab_is_white_space_for_a_classifier_of_single_texts(run, models) -> None:
    found = run("classify", models["classification"], stdin=b"the\tblue\tsea\nthe blue sea\n").stdout.splitlines()
    assert found[0] == found[1]


def test_two_tabs_are_not_a_pair(run, models) -> None:
    result = run("score", models["translation"], stdin=b"red dog\tblue sea\nred\tdog\tblue sea\n", code=2)
    assert b"heedful: line 2 has more than one tab" in result.stderr


@pytest.mark.parametrize("verb", ["translate", "classify"])
def test_input_in_another_encoding_is_told_of_in_a_few_lines(run, models, verb: str) -> None:
    task, options, _ = VERBS[verb]
    told = run(verb, models[task], *options, stdin="süß\n".encode("latin-1") * 1300).stderr.decode().splitlines()
    assert told[0].endswith("; --encoding names the encoding of the input") and len(told) == 6
    assert told[5] == "heedful: ... and 1,295 more like this"
    told = run(verb, models[task], *options, "--encoding", "utf-16", stdin=b"\xff\xfea\0\x00\xdc\n\0").stderr.decode()
    assert "line 1 is not valid utf-16" in told and "UTF-8" not in told
    told = run(verb, models[task], *options, "--encoding", "utf-16", stdin=b"red dog\n", code=2).stderr.decode()
    assert told.startswith("heedful: standard input has no byte order mark") and told.count("\n") == 1
    told = run(verb, models[task], *options, "--encoding", "latin-1", stdin="süß\n".encode(), code=2).stderr.decode()
    assert told == "heedful: standard input is valid UTF-8, not latin-1: leave --encoding out\n"
    told = run(verb, models[task], *options, stdin=b"red dog\rblue sea\rsun\r").stderr.decode()
    assert "heedful: the input is one line, with 3 carriage returns in it: if its lines end with them" in told


@pytest.mark.parametrize("options", [["--top-p", "0.9"], ["--top-k=3", "--seed=0"], ["--temperature", "1.0"]])
def test_options_of_sampling_need_sampling(run, models, options: list[str]) -> None:
    told = run("translate", models["translation"], "red dog", *options, code=2).stderr.decode()
    assert told.startswith(f"heedful: {options[0].partition('=')[0]}") and "add --sample" in told
    assert run("translate", models["translation"], "red dog", "--sample", "--max-length=5", *options).stdout


def test_a_folder_is_not_written_as_a_file(run, models, tmp_path: Path) -> None:
    for name in (f"{tmp_path / 'missing'}/", tmp_path):
        told = run("translate", models["translation"], "red dog", "--output", name, code=2).stderr.decode()
        assert "is the name of a folder: name a file, such as" in told
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("samples", ["1", "3"])
def test_remarks_on_prompts_name_their_lines_once(run, small_folders, samples: str) -> None:
    lines = ["red", "red dog " * 40, "", "dog", "dog red " * 50]
    arguments = ["--lines", "--samples", samples, "--max-tokens", "2"]
    result = run("generate", small_folders["language_model"], *arguments, stdin="\n".join(lines).encode())
    assert result.stdout.count(b"\n") == len(lines) * int(samples)
    told = [line.split(" tokens")[0].rsplit(" ", 1)[0] for line in result.stderr.decode().splitlines()]
    assert told == ["heedful: line 2 has", "heedful: line 5 has"]


def test_remarks_on_lines_beyond_the_first_group(run, small_folders) -> None:
    lines = ["red"] * 300 + ["red dog " * 40, "dog"]
    given = "\n".join(lines).encode()
    cases = [("language_model", ["generate", "--lines", "--max-tokens", "1"]), ("classification", ["classify"])]
    for task, (verb, *options) in [*cases, ("encoder", ["embed"]), ("translation", ["translate", "--max-length", "1"])]:
        told = run(verb, small_folders[task], *options, stdin=given).stderr.decode().splitlines()
        assert len(told) == 1 and told[0].startswith("heedful: line 301 ")


def test_a_remark_on_a_prompt_reads_well(run, small_folders) -> None:
    told = run("generate", small_folders["language_model"], "red dog " * 40, "--max-tokens", "1").stderr.decode()
    assert told.startswith("heedful: the prompt has ") and told.endswith(": only the last 14 are used\n")
