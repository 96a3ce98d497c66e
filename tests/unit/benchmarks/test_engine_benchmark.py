"""The comparison of the engine with others: ratios, whole commands, and the GPT that all have."""

import gzip
import sys
from pathlib import Path

import pytest
import torch

import heedful
from benchmarks.speed import engine_gpt, gpt_model, report
from benchmarks.speed.comparisons import Comparisons, Goal, ratio
from benchmarks.speed.engine_commands import agreement
from benchmarks.speed.measured_command import Command, CommandError
from benchmarks.speed.measuring import Measured
from benchmarks.speed.peer import DRIVERS
from benchmarks.speed.setups import thread_choices
from heedful.decoding import DecodingOptions, Request, decode
from heedful.interop.ctranslate2_export import export_folder
from heedful.interop.foreign_config import ForeignConfig
from heedful.interop.gpt2 import convert
from heedful.interop.mapping import Tensors
from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.weights_file import parameter_tensors
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.stack import StackConfig
from heedful.text.tokenizer import Tokenizer

TWO, FOUR = Measured(2.0, 1.0, 3.0), Measured(4.0, 4.0, 4.0)


def test_ratios_say_how_many_times_as_good_we_are() -> None:
    assert ratio("speed", FOUR, TWO) == 2
    assert ratio("time", FOUR, TWO) == 0.5
    assert ratio("memory", FOUR, TWO) == 2


def test_rows_have_both_figures_and_the_goal() -> None:
    found = Comparisons("heedful bench engine", {"data": "Multi30k"})
    found.add("one sentence", "them", "time", TWO, FOUR, "ms", Goal(">= 1.7", ">= 2.5"), setting="1 thread")
    (row,) = found.rows
    assert (row["value"], row["required"], row["aim"]) == (2.0, ">= 1.7", ">= 2.5")
    assert (row["ours"], row["theirs"], row["figures_in"]) == ([2.0, 1.0, 3.0], [4.0, 4.0, 4.0], "ms")
    text = report.engine_section(found.rows, Path())
    assert "| one sentence | them | 1 thread | 2 (1 - 3) ms | 4 (4 - 4) ms | 2 | >= 1.7 | >= 2.5 | yes |" in text


@pytest.mark.parametrize(("required", "yes"), [(">= 1.3", True), (">= 1.4", False), ("<= 1.1", False), ("-", True)])
def test_goals(required: str, yes: bool) -> None:
    assert report.reached({"value": 1.3, "required": required}, "required") == yes


def test_one_core_has_one_setting() -> None:
    assert [threads for threads, _, _ in thread_choices(1)] == [1]
    assert [threads for threads, _, _ in thread_choices(4)] == [1, 4, 4]


def command(tmp_path: Path, program: str) -> Command:
    (tmp_path / "in.txt").write_text("a\nb\n")
    return Command("it", [sys.executable, "-c", program], tmp_path / "in.txt", tmp_path / "out.txt")


def test_a_command_is_timed_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    program = "import sys, time; time.sleep(0.2); print(sys.stdin.read().upper() + str(sys.dont_write_bytecode))"
    it = command(tmp_path, program)
    assert it.seconds() >= 0.2
    assert it.lines() == ["A", "B", "False"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a process's peak memory")
def test_the_memory_of_a_command_is_that_of_all_its_processes(tmp_path: Path) -> None:
    child = "x = bytearray(60 << 20); import time; time.sleep(0.2)"
    program = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    alone = command(tmp_path, "pass").megabytes()
    assert 0 <= alone < 50
    assert 60 < command(tmp_path, program).megabytes() < 150


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="it failed with status 1: nothing works"):
        command(tmp_path, "raise SystemExit('nothing works')").seconds()


def tiny_gpt() -> torch.nn.Module:
    torch.manual_seed(1)
    settings = {"vocabulary_size": 61, "width": 24, "max_length": 40}
    stack = {"num_layers": 2, "attention": {"num_heads": 3}}
    model = heedful.build("gpt2_small", **settings, stack=stack).eval()
    gpt_model.prepare(model)
    return model


def test_the_gpt_never_writes_a_special_token() -> None:
    model = tiny_gpt()
    (found,) = decode(model, [Request(0, [7, 9])], DecodingOptions(beam=1, max_length=30), 1)
    assert len(found.hypotheses[0].tokens) == 30


def test_a_token_of_the_gpt_needs_all_matrices_once() -> None:
    assert gpt_model.weights_per_token(tiny_gpt()) == 2 * 12 * 24 * 24 + 61 * 24
    assert engine_gpt.bandwidth_share(10**8, 100.0, 20.0) == 50


def test_the_gpt_of_others_has_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("ctranslate2")
    monkeypatch.syspath_prepend(str(DRIVERS))
    import gpt2_conversion

    from heedful.config import to_dict

    model = tiny_gpt()
    ours = parameter_tensors(model)
    theirs = gpt2_conversion.renamed(ours, 2)
    config = gpt2_conversion.gpt2_config(to_dict(model.config)).to_dict()
    back = convert(ForeignConfig(Path("config.json"), config), Tensors(dict(theirs)))
    assert back.tensors.keys() == ours.keys()
    assert all(torch.equal(back.tensors[name], ours[name]) for name in ours)
    assert back.settings.stack.norm_epsilon == model.config.stack.norm_epsilon


def test_systems_that_differ_are_not_compared() -> None:
    engine_gpt.agreement({"a": ([1, 2, 3], -4.0), "b": ([1, 2, 3], -4.001)})
    with pytest.raises(ValueError, match="from token 1 on"):
        engine_gpt.agreement({"a": ([1, 2, 3], -4.0), "b": ([1, 5, 3], -4.0)})
    with pytest.raises(ValueError, match="score"):
        engine_gpt.agreement({"a": ([1, 2, 3], -4.0), "b": ([1, 2, 3], -4.1)})


def test_the_program_with_ctranslate2_translates_what_heedful_does(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    texts = ["a dog runs", "two dogs run on the grass", "the cat"]
    tokenizer = Tokenizer.train(texts * 5, 300)
    torch.manual_seed(1)
    stack = StackConfig(num_layers=1, attention=AttentionConfig(num_heads=2))
    config = EncoderDecoderConfig(tokenizer.vocabulary_size, 16, encoder=stack, decoder=stack, output_bias=True)
    model = EncoderDecoder(config).eval()
    with torch.no_grad():
        # No special tokens, and no single bytes, of which some would end a line.
        model.output.bias[:259] = -1e4
    save_model_folder(
        tmp_path / "ours", model, tokenizer, ModelConfig("encoder_decoder", "translation", config), "random"
    )
    export_folder(tmp_path / "ours", tmp_path / "theirs")
    (tmp_path / "in.txt").write_text("".join(text + "\n" for text in texts))
    program = [
        sys.executable,
        str(DRIVERS / "ctranslate2_lines.py"),
        str(tmp_path / "theirs"),
        "--precision",
        "float32",
    ]
    program += ["--shortest", "6", "--longest", "6"]
    it = Command("it", program, tmp_path / "in.txt", tmp_path / "out.txt")
    it.seconds()
    options = DecodingOptions(length_penalty=0.0, min_length=6, max_length=6)
    expected = [each.text for each in heedful.load(tmp_path / "ours").translate(texts, options)]
    assert len(set(expected)) == len(texts), "texts that are all the same would show nothing"
    assert it.lines() == expected


def test_programs_that_do_other_work_are_not_compared() -> None:
    found = agreement(["a b c d", "e f g h"], ["a b c d", "e f g i"], ["a b c d", "e f g h"])
    assert found["same_lines"] == 50 and found["bleu"][0] == 100 > found["bleu"][1]
    with pytest.raises(ValueError, match="only 0 % of the lines are the same"):
        agreement(["a", "b"], ["b", "a"], None)


def test_tests_may_be_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DRIVERS.parents[1]))
    import int8_bleu

    (tmp_path / "a.gz").write_bytes(gzip.compress("ä\nb\n".encode()))
    (tmp_path / "a").write_text("ä\nb\n", encoding="utf-8")
    assert int8_bleu.lines_of(str(tmp_path / "a.gz")) == int8_bleu.lines_of(str(tmp_path / "a")) == ["ä", "b"]


def test_int8_rows_are_shown_with_their_signs() -> None:
    row = {"measure": "mean difference, int8 - fp32, models: 3", "value": -0.05, "command": "c", "commit": "abc"}
    row["versions"] = {"machine": "m", "torch": "2"}
    assert "| mean difference, int8 - fp32, models: 3 | -0.05 |" in report.int8_section([row], Path())
