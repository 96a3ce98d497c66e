"""What every job keeps to, whichever task it is of: from a user's files to a task, a model folder and its card."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from heedful.errors import UserError
from heedful.model_folder import load_model_folder, save_model_folder
from heedful.models.families import FAMILIES
from heedful.prepared.folder import Expected
from heedful.tasks.declaration import resolve
from heedful.tasks.job import Job, PreparedJob
from heedful.tasks.registry import all_tasks
from heedful.tasks.task import LearningSettings, Task
from heedful.tasks.validation_signs import EXAMPLES_TO_READ
from heedful.training.resolve import asked_model_settings, choose
from heedful.training.run_config import RunConfig

Files = dict[str, Any]
WORDS = ["red", "green", "blue", "white", "black", "dog", "cat", "bird", "fish", "house", "tree", "sun", "moon"]
LINES = [" ".join(WORDS[(row * step) % 13] for step in range(1, 3 + row % 5)) for row in range(1, 61)]
STACK = {"num_layers": 1, "attention": {"num_heads": 2}, "feed_forward": {"inner_width": 17}}


def _file(folder: Path, lines: list[str]) -> str:
    (folder / "data.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(folder / "data.txt")


def _pairs(folder: Path) -> Files:
    return {"tsv": _file(folder, [f"{line}\t{line.upper()}" for line in LINES])}


def _text(folder: Path) -> Files:
    return {"text": _file(folder, LINES)}


def _labels(folder: Path) -> Files:
    return {"data": _file(folder, [f"{'long' if len(line) > 15 else 'short'}\t{line}" for line in LINES])}


def _tags(folder: Path) -> Files:
    tagged = ["".join(f"{word}\t{word[0].upper()}\n" for word in line.split()) for line in LINES]
    return {"data": _file(folder, tagged)}


def _images(folder: Path) -> Files:
    random = np.random.default_rng(1)
    for number in range(60):
        of_class = folder / "images" / ("dark", "light")[number % 2]
        of_class.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 90, (11, 13, 3)) + 120 * (number % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(of_class / f"{number}.png")
    return {"images": str(folder / "images")}


# The files of a small example, for each command of `heedful train`.
EXAMPLES: dict[str, Callable[[Path], Files]] = {
    "translation": _pairs,
    "language-model": _text,
    "masked-language-model": _text,
    "classifier": _labels,
    "tagger": _tags,
    "image-classifier": _images,
}
TRAININGS = {task.training.command: task.training for task in all_tasks().values() if task.training}
CASES = [(command, family) for command in TRAININGS for family in resolve(TRAININGS[command].data)().families]


@dataclass(frozen=True)
class Prepared:
    """A job with all that a run makes of it, up to its first step."""

    command: str
    family: str
    job: Job
    folder: Path
    model_settings: dict[str, Any]
    data: PreparedJob
    model: torch.nn.Module
    settings: Any
    task: Task[Any]


def _model_settings(family: str) -> dict[str, Any]:
    if family == "recurrent":
        return {"width": 12, "hidden_width": 14}
    stacks = ("encoder", "decoder") if family == "encoder_decoder" else ("stack",)
    own = {"decoder_only": {"max_length": 16}, "xlnet": {"memory_length": 5, "max_length": 16}}.get(family, {})
    return {"width": 12, **own, **dict.fromkeys(stacks, STACK)}


def prepare(job: Job, folder: Path, model_settings: dict[str, Any], expected: Expected | None = None) -> PreparedJob:
    return job.prepare(folder, model_settings, lambda *_: None, expected)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(case))
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    command, family = request.param
    files, folder = (tmp_path_factory.mktemp(f"{command}-{family}-{part}") for part in ("files", "run"))
    job = resolve(TRAININGS[command].data)(**EXAMPLES[command](files))
    settings = {"model": _model_settings(family), "training": {"machine": {"device": "cpu", "workers": 1}}}
    run = RunConfig(str(folder), job, settings=settings, family=family)
    job.check()
    model_settings = asked_model_settings(run)
    data = prepare(job, folder, model_settings)
    resolved = choose(run, data)
    assert resolved.family == family
    torch.manual_seed(1)
    model = FAMILIES[family].build(resolved.model)
    job.start(model)
    task = data.task(model.eval(), LearningSettings(120, 0.1, 1))
    return Prepared(command, family, job, folder, model_settings, data, model, resolved.model, task)


def test_every_command_has_an_example() -> None:
    assert TRAININGS.keys() == EXAMPLES.keys()


@pytest.mark.parametrize("command", TRAININGS)
def test_files_that_are_missing_are_refused(command: str, tmp_path: Path) -> None:
    kind = resolve(TRAININGS[command].data)
    with pytest.raises(UserError, match="no data"):
        kind().check()
    (name,) = EXAMPLES[command](tmp_path)
    with pytest.raises(UserError, match="nowhere"):
        kind(**{name: str(tmp_path / "nowhere")}).check()


def test_a_model_to_start_from_that_is_missing_is_refused(prepared: Prepared, tmp_path: Path) -> None:
    start = "start_from" if prepared.command == "image-classifier" else "from_model"
    job = type(prepared.job)(**{start: str(tmp_path / "nowhere")})
    assert job.start_folder == str(tmp_path / "nowhere") and start in job.files
    with pytest.raises(UserError, match="there is no model folder"):
        job.base_settings()


def test_what_is_prepared_is_used_again(prepared: Prepared) -> None:
    def written() -> dict[str, int]:
        files = [each for each in (prepared.folder / "prepared").rglob("*") if each.is_file()]
        return {str(each): each.stat().st_mtime_ns for each in files if each.suffix in (".npy", ".bin", ".json")}

    before = written()
    again = prepare(prepared.job, prepared.folder, prepared.model_settings, Expected(prepared.data.key))
    assert again.key == prepared.data.key and again.num_tokens == prepared.data.num_tokens > 0
    assert before and written() == before
    assert [each.value for each in again.choices()] == [each.value for each in prepared.data.choices()]


@pytest.mark.parametrize("command", [command for command in TRAININGS if command != "image-classifier"])
def test_what_another_process_has_read_is_not_read_again(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((name, file),) = EXAMPLES[command](tmp_path).items()
    job = resolve(TRAININGS[command].data)(**{name: "-", f"valid_{name}": file})
    settings = {"vocabulary_size": 300}
    with Path(file).open("rb") as piped:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=piped))
        first = prepare(job, tmp_path / "run", settings)
    monkeypatch.setattr("sys.stdin", None)
    Path(file).write_text("")
    (tmp_path / "run" / "spooled.partial").mkdir()  # of a process that is still reading
    other = prepare(job, tmp_path / "run", settings, Expected(first.key, is_checked=True))
    assert (other.key, other.num_tokens) == (first.key, first.num_tokens)
    assert [each.value for each in other.choices()] == [each.value for each in first.choices()]
    assert (tmp_path / "run" / "spooled.partial").is_dir()


def test_data_of_another_key_is_refused(prepared: Prepared, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="changed since"):
        prepare(prepared.job, tmp_path, prepared.model_settings, Expected("another key"))


def test_an_epoch_is_a_function_of_its_number(prepared: Prepared) -> None:
    first, again, other = (prepared.task.epoch_batches(epoch) for epoch in (3, 3, 4))
    assert len(first) > 1
    assert [each.tolist() for each in first] == [each.tolist() for each in again]
    assert [each.tolist() for each in first] != [each.tolist() for each in other]


@torch.inference_mode()
def test_the_loss_of_a_batch_is_that_of_its_halves(prepared: Prepared) -> None:
    batch = prepared.task.collate(max(prepared.task.epoch_batches(0), key=len))
    halves = batch.halves()
    assert len(halves) == 2
    assert batch.num_targets == sum(each.num_targets for each in halves) > 0
    assert batch.num_real == sum(each.num_real for each in halves) <= batch.num_tokens
    for whole, first, second in zip(
        *(prepared.task.loss(prepared.task.model, each) for each in (batch, *halves)), strict=True
    ):
        assert 0 < float(whole) < prepared.task.largest_loss * batch.num_targets
        assert float(first) + float(second) == pytest.approx(float(whole), rel=1e-5)


@torch.inference_mode()
def test_a_validation_measures_and_examples_are_few(prepared: Prepared) -> None:
    result = prepared.task.validate()
    assert 0 < result.loss < prepared.task.largest_loss
    declared = next(task for task in all_tasks().values() if task.training is TRAININGS[prepared.command])
    assert set(declared.scores) <= result.scores.keys()
    assert result.rank == prepared.task.validate().rank
    assert 1 <= sum(1 for _ in prepared.task.read_examples(prepared.model)) <= EXAMPLES_TO_READ
    assert prepared.task.width == 12 and prepared.task.validation_tokens > 0 and prepared.task.unit


def test_a_model_folder_tells_the_same_of_the_model_and_how_it_is_used(prepared: Prepared, tmp_path: Path) -> None:
    config = prepared.data.model_config(prepared.family, prepared.settings)
    card = prepared.data.card(config, "my-model", {"loss": 1.25})
    save_model_folder(tmp_path / "my-model", prepared.model, prepared.data.tokenizer, config, card)
    loaded = load_model_folder(tmp_path / "my-model")
    assert loaded.config == config
    assert config.task in all_tasks() and all_tasks()[config.task].training is TRAININGS[prepared.command]
    assert (tmp_path / "my-model" / "README.md").read_text(encoding="utf-8") == card
    assert TRAININGS[prepared.command].usage.format("my-model") in card and "| loss | 1.2500 |" in card
