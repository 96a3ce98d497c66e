"""`heedful plan`: its table, JSON and picture, and what it says of mistakes."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from heedful.cli.main import cli
from heedful.errors import UserError
from heedful.model_folder import check_model_folder
from heedful.planning.layouts import Layout
from heedful.planning.measured import Measured
from heedful.planning.picture import picture
from heedful.planning.plan import MOST_TRIED, Plan, make_plan
from heedful.planning.quantities import amount, shown
from heedful.planning.ranking import Planner
from heedful.planning.subject import Subject, subject_of
from heedful.planning.table import print_plan
from heedful.planning.timing import Hardware
from planned_subjects import subject

CONFIG = """
preset = "translation_tiny"
[model]
vocabulary_size = 997
max_length = 61
encoder = { num_layers = 1 }
decoder = { num_layers = 1 }
[training]
machine = { precision = "fp32" }
batches = { tokens_per_step = 4000 }
"""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(subject("gpt"), 8, 1e6, Hardware(1e9, 1e12, 1e9))


def test_the_best_layouts_are_measured_and_the_fastest_is_first(plan: Plan) -> None:
    assert sum(each.measured is not None for each in plan.layouts) == 3
    assert all(each.total <= 1e9 and each.layout.gpus == 8 for each in plan.layouts)
    speeds = [float(f"{each.step_seconds / each.step_tokens:.1e}") for each in plan.layouts]
    assert speeds == sorted(speeds)
    assert plan.fitting >= len(plan.layouts)


def small_plan(
    monkeypatch: pytest.MonkeyPatch, memory: Callable[[int], float], more: Callable[[Layout], float]
) -> tuple[Callable[[], Plan], Planner, Hardware]:
    """A plan whose measured layouts need `more` than closed forms say, with memory by the need of the smallest."""
    given = subject("translation")  # without stages, so that every layout can be measured
    planner = Planner.of(given)
    hardware = Hardware(memory(planner.smallest(4, Hardware(1e9, 1e12, 1e9)).total), 1e12, 1e9)

    def measured(subject: Subject, layout: Layout) -> Measured:
        closed = planner.planned(layout, hardware)
        return Measured({kind: int(more(layout) * size) for kind, size in closed.memory.items()}, closed.sent, 0.0)

    monkeypatch.setattr("heedful.planning.plan.measure", measured)
    return lambda: make_plan(given, 4, 1e6, hardware), planner, hardware


def test_what_does_not_fit_when_measured_is_refused_with_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    run, planner, hardware = small_plan(monkeypatch, lambda smallest: 1.5 * smallest, lambda layout: 2.0)
    smallest = planner.smallest(4, hardware)
    with pytest.raises(UserError, match=f"needs {shown(2 * smallest.total, 'B')} per GPU; (.*)") as error:
        run()
    enough = re.search(r"about ([0-9]+) such GPUs are enough", str(error.value))
    assert not enough or 2 * planner.smallest(int(enough[1]), hardware).total <= hardware.memory


def test_layouts_that_were_measured_not_to_fit_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    run, planner, hardware = small_plan(monkeypatch, lambda smallest: 1e9, lambda layout: 1e9 ** (layout.replicate > 1))
    ranked = planner.ranked(4, hardware)
    plan = run()
    tried = [each.layout for each in ranked[:MOST_TRIED]]
    assert plan.fitting == len(ranked) - sum(layout.replicate > 1 for layout in tried) < len(ranked)


def test_the_smallest_layout_is_tried_before_a_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    smallest: list[Layout] = []
    run, planner, hardware = small_plan(
        monkeypatch, lambda smallest: 3.0 * smallest, lambda layout: 1.5 if layout in smallest else 9.0
    )
    smallest.append(planner.smallest(4, hardware).layout)
    assert smallest[0] not in [each.layout for each in planner.ranked(4, hardware)]
    plan = run()
    assert [each.layout for each in plan.layouts] == smallest and plan.fitting == 1


def test_the_picture_has_a_bar_for_every_kind_and_the_limit(plan: Plan) -> None:
    svg = ElementTree.fromstring(picture(plan, ".svg"))
    names = [each.text for each in svg.iter() if each.tag.endswith("title")]
    assert len(names) == 5 * len(plan.layouts)
    assert "limit: 1 GB" in "".join(svg.itertext())
    assert picture(plan, ".html").startswith("<!doctype html>")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["plan", *arguments], catch_exceptions=False, standalone_mode=False)
    return result.stdout


def test_a_settings_file_is_planned_as_json_and_drawn(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(CONFIG)
    options = [str(tmp_path / "run.toml"), "--gpus", "2", "--tokens", "1M"]
    picture_file = tmp_path / "plan.svg"
    found = json.loads(run(*options, "--json", "--out", str(picture_file)))
    assert found["precision"] == "fp32" and found["gpus"] == 2
    first = found["layouts"][0]
    assert first["replicate"] * first["shard"] * first["tensor"] * first["pipeline"] == 2
    assert first["measured"]["total"] == sum(first["measured"]["memory"].values())
    assert first["steps"] == -(-1_000_000 // first["tokens_per_step"])
    assert picture_file.read_text().startswith("<svg")


def test_the_table_has_every_kind_and_axis(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(plan)
    table = capsys.readouterr().out
    for words in ("parameters", "activations", "sent: replicate", "assumed: each GPU computes at", "FLOPs per token"):
        assert words in table


def test_a_model_folder_is_planned_with_its_own_settings(untrained_model: Path) -> None:
    found = subject_of(str(untrained_model))
    assert found.family == "encoder_decoder" and found.model == check_model_folder(untrained_model).model
    assert found.assumed == ("steps of 500,000 tokens",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gpt2_xxl", "--gpus", "8"], "there is no preset, model folder or settings file 'gpt2_xxl': did you mean"),
        (["gpt2_xl", "--gpus", "0"], "--gpus is 0, but must be between 1 and"),
        (["gpt2_xl", "--gpus", "8", "--gpu-memory", "lots"], "--gpu-memory is 'lots': write it as a number above 0"),
        (["gpt2_xl", "--gpus", "8", "--gpu-memory", "80"], "--gpu-memory is '80', but must be between 1 M and 1 P: "),
        (["gpt2_xl", "--gpus", "1000000000000"], "--gpus is 1000000000000, but must be between 1 and 131,072"),
        (["gpt2_xl", "--gpus", "8", "--tokens", "-3B"], "--tokens is '-3B'"),
        (["gpt2_xl", "--gpus", "8", "--tokens", "1e300"], "--tokens is '1e300', but must be between 1 and 1,000 P"),
        (["gpt2_xl", "--gpus", "8", "--flops", "400"], "--flops is '400', but must be between 1 M and"),
        (["gpt2_xl", "--gpus", "8", "--out", "none/plan.svg"], "--out is 'none/plan.svg': there is no folder none"),
        (["gpt2_xl", "--gpus", "8", "--out", "plan.png"], "--out is 'plan.png': a picture is a file that ends in"),
        (["recurrent_tiny", "--gpus", "8"], "recurrent_tiny is of the family 'recurrent', of which there is no plan"),
        (["gpt3_175b", "--gpus", "8"], "gpt3_175b fits in no layout of 8 GPUs with 80 GB each: the smallest, "),
        (["missing.toml", "--gpus", "8"], "cannot read the settings file missing.toml"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        cli.main(["plan", *arguments], standalone_mode=False)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_model_that_does_not_fit_is_told_how_many_gpus_are_enough() -> None:
    with pytest.raises(UserError, match=r"about 64 such GPUs are enough"):
        cli.main(["plan", "gpt3_175b", "--gpus", "8"], standalone_mode=False)


@pytest.mark.parametrize(
    ("text", "value"), [("80G", 80e9), ("300B", 300e9), ("1.5e3k", 1.5e6), ("400t", 4e14), (" 7 ", 7.0)]
)
def test_amounts(text: str, value: float) -> None:
    assert amount(text, "it") == value


@pytest.mark.parametrize("letter", range(1, 7))
@pytest.mark.parametrize("share", [0.9, 0.9994, 0.99949, 0.99951, 0.9998, 1.0])
def test_amounts_near_the_next_letter_are_shown_as_they_are(share: float, letter: int) -> None:
    number, unit = shown(share * 1000**letter, "B").split()
    assert "e" not in number
    size = 1000 ** ["B", "kB", "MB", "GB", "TB", "PB"].index(unit)
    assert float(number.replace(",", "")) * size == pytest.approx(share * 1000**letter, rel=0.001)


def test_amounts_are_shown_in_three_digits() -> None:
    assert [shown(each, "B") for each in (0, 12, 1234, 999_600, 80e9, 1.5e18)] == [
        "0 B",
        "12 B",
        "1.23 kB",
        "1 MB",
        "80 GB",
        "1,500 PB",
    ]


@pytest.mark.parametrize("width", ["80", "100", None])
def test_a_layout_is_whole_at_any_width(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: str | None
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if width:
        monkeypatch.setenv("COLUMNS", width)
    longest = replace(plan.layouts[0], layout=Layout(2, 2, 2, 1, sequences=3, parts=97))
    print_plan(replace(plan, layouts=[longest, *plan.layouts[1:]]))
    lines = capsys.readouterr().out.splitlines()
    rows = lines[lines.index(next(line for line in lines if " days" in line)) + 2 :]
    assert " ".join(rows[0].split()).startswith("1 replicate 2 x shard 2 x tensor 2 ")
    assert all(str(each.layout) in row for each, row in zip(plan.layouts[1:], rows[1:], strict=False))
    told = [line for line in lines if line.startswith("no room for steps")]
    assert bool(told) == bool(width)
    assert all(len(line) <= 80 for line in rows[: len(plan.layouts)]) or width != "80"
