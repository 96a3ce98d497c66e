"""A model whose weights lie in several files is the model that lies in one, and is as safe."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import heedful
from heedful.core import weight_shards
from heedful.errors import UserError
from heedful.files import bytes_of, save_tensors
from heedful.model_folder import check_weights, load_model_folder, save_model_folder
from heedful.server.front.private_models import private_models
from heedful.server.settings import ServerSettings
from heedful.tasks.starting_model import content_digest
from heedful.weights_index import INDEX, read_index, weights_files
from heedful.weights_writer import TensorKind, split

ENGINES = ["core", "torch"]
LIMIT = 20_000


@pytest.fixture
def sharded(untrained_model: Path, tmp_path: Path) -> Path:
    heedful.save(heedful.load(untrained_model, engine="torch"), tmp_path / "sharded", shard_bytes=LIMIT)
    return tmp_path / "sharded"


def shards_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*-of-*.safetensors"))


def save_changed(folder: Path, factor: float, limit: int = LIMIT) -> None:
    loaded = load_model_folder(folder)
    with torch.no_grad():
        for parameter in loaded.network.parameters():
            parameter.mul_(factor)
    save_model_folder(folder, loaded.network, loaded.tokenizer, loaded.config, "card", limit)


def test_tensors_are_split_in_their_order() -> None:
    kinds = {name: TensorKind("F32", (size,)) for name, size in (("a", 3), ("b", 2), ("c", 11), ("d", 1), ("e", 4))}
    assert split(kinds, 20) == [["a", "b"], ["c"], ["d", "e"]]
    assert split(kinds, 10**6) == [list(kinds)]


@pytest.mark.parametrize("engine", ENGINES)
def test_shards_give_the_answers_of_one_file(engine: str, untrained_model: Path, sharded: Path) -> None:
    one, several = (heedful.load(folder, engine=engine) for folder in (untrained_model, sharded))
    assert several.translate("red dog", nbest=3, beam=3) == one.translate("red dog", nbest=3, beam=3)
    assert several.score("red dog", "dog").token_scores == one.score("red dog", "dog").token_scores


def test_tensors_in_pieces_and_threads_are_those_in_one(
    untrained_model: Path, sharded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = heedful.load(untrained_model, engine="core").score("red dog", "dog").token_scores
    monkeypatch.setattr("heedful.core.weights.BLOCK", 257)
    monkeypatch.setattr("heedful.core.model.LARGE_FILE", 1)
    monkeypatch.setattr("heedful.core.model.available_cores", lambda: 3)
    for folder in (untrained_model, sharded):
        assert heedful.load(folder, engine="core").score("red dog", "dog").token_scores == expected
    file = shards_of(sharded)[-1]
    content = bytearray(file.read_bytes())
    content[-2] ^= 1
    file.write_bytes(content)
    with pytest.raises(UserError, match=f"{file.name} is damaged"):
        heedful.load(sharded, engine="core")


def test_the_files_are_those_of_hugging_face(untrained_model: Path, sharded: Path) -> None:
    content, files = json.loads((sharded / INDEX).read_text()), shards_of(sharded)
    assert files and not (sharded / "model.safetensors").exists()
    assert [each.name for each in files] == [
        f"model-{number:05d}-of-{len(files):05d}.safetensors" for number in range(1, len(files) + 1)
    ]
    found: dict[str, torch.Tensor] = {}
    for file in files:
        tensors = load_file(file)
        assert {name for name, place in content["weight_map"].items() if place == file.name} == tensors.keys()
        assert len(tensors) == 1 or bytes_of(tensors) <= LIMIT
        found |= tensors
    expected = load_file(untrained_model / "model.safetensors")
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)
    assert content["metadata"]["total_size"] == bytes_of(expected)
    assert check_weights(sharded).shapes == check_weights(untrained_model).shapes


def test_a_streamed_file_is_what_the_library_writes(untrained_model: Path, tmp_path: Path) -> None:
    file = untrained_model / "model.safetensors"
    tensors = load_file(file)
    save_tensors(tmp_path / "library", tensors)
    begin = [8 + int.from_bytes(each.read_bytes()[:8], "little") for each in (file, tmp_path / "library")]
    assert file.read_bytes()[begin[0] :] == (tmp_path / "library").read_bytes()[begin[1] :]
    assert begin[0] % 8 == 0


def _flip(folder: Path) -> str:
    file = shards_of(folder)[1]
    content = bytearray(file.read_bytes())
    content[-5] ^= 4
    file.write_bytes(content)
    return rf"{file.name} is damaged: it does not have the checksum"


def _swap(folder: Path) -> str:
    """A shard of other weights, which is whole by itself."""
    other, file = folder.parent / "other", shards_of(folder)[1]
    heedful.save(heedful.load(folder, engine="torch"), other, shard_bytes=LIMIT)
    save_changed(other, 1.5)
    changed = read_index(other / INDEX).files[1]
    file.write_bytes((other / changed).read_bytes())
    return rf"{file.name} is not the file that {INDEX} was written with: it does not have the checksum"


def _exchange(folder: Path) -> str:
    first, second = shards_of(folder)[:2]
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    return rf"{first.name} is not the file that {INDEX} was written with"


def _remove(folder: Path) -> str:
    file = shards_of(folder)[-1]
    file.unlink()
    return rf"{file.name} is missing, in which {INDEX} says some of the weights to be"


def _mislead(folder: Path) -> str:
    content = json.loads((folder / INDEX).read_text())
    name = next(iter(content["weight_map"]))
    content["weight_map"][name] = "../model.safetensors"
    (folder / INDEX).write_text(json.dumps(content))
    return rf"weight_map puts '{name}' into '../model.safetensors', not a file of this folder"


def _drop_tensor(folder: Path) -> str:
    content = json.loads((folder / INDEX).read_text())
    content["weight_map"].pop(next(iter(content["weight_map"])))
    (folder / INDEX).write_text(json.dumps(content))
    return rf"is not the file that {INDEX} was written with: it does not have the tensors|are not those of the files"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("damage", [_flip, _swap, _exchange, _remove, _mislead, _drop_tensor])
def test_damage_is_refused_with_the_name_of_the_file(engine: str, damage: Callable[[Path], str], sharded: Path) -> None:
    told = damage(sharded)
    with pytest.raises(UserError, match=told):
        heedful.load(sharded, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("old", "new"), [(LIMIT, LIMIT), (LIMIT, 10**9), (10**9, LIMIT)])
def test_a_save_that_is_killed_at_any_file_leaves_the_old_model_or_the_new(
    engine: str, old: int, new: int, sharded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0

    class Killed(BaseException):
        pass

    for name, real in (("replace", Path.replace), ("unlink", Path.unlink)):
        for survived in range(40):
            calls = iter([*[True] * survived, False])

            def counted(path: Path, *more, real=real, calls=calls, **named) -> object:
                if not next(calls, True):
                    raise Killed
                return real(path, *more, **named)

            if old != new:
                save_changed(sharded, 1.25, old)
            monkeypatch.setattr(Path, name, counted)
            try:
                save_changed(sharded, 1.25, new)
                done = True
            except Killed:
                done = False
            monkeypatch.undo()
            heedful.load(sharded, engine=engine)  # shards of both together would be refused
            steps += 1
            if done:
                break
        assert done
    assert steps > 4 and shards_of(sharded) == sorted(file for file in weights_files(sharded) if new == LIMIT)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_folder_with_two_sets_of_weights_is_refused(engine: str, untrained_model: Path, sharded: Path) -> None:
    save_changed(sharded, 1.5)
    shutil.copy(untrained_model / "model.safetensors", sharded)
    with pytest.raises(UserError, match="holds two sets of weights"):
        heedful.load(sharded, engine=engine)
    (sharded / INDEX).unlink()
    expected = heedful.load(untrained_model, engine=engine).score("red dog", "dog")
    assert heedful.load(sharded, engine=engine).score("red dog", "dog") == expected
    save_changed(sharded, 1.0)
    assert not (sharded / "model.safetensors").exists() and len(shards_of(sharded)) == len(weights_files(sharded))


def test_a_folder_goes_from_one_file_to_several_and_back(untrained_model: Path) -> None:
    digests = {content_digest(untrained_model)}
    before = heedful.load(untrained_model).score("red dog", "dog").token_scores
    model = heedful.load(untrained_model, engine="torch")
    for limit in (LIMIT, LIMIT, 3 * LIMIT, 10**9, LIMIT):
        heedful.save(model, untrained_model, shard_bytes=limit)
        files = [file.name for file in untrained_model.glob("model*.safetensors*")]
        if limit == 10**9:
            assert files == ["model.safetensors"]
        else:
            assert sorted(files) == sorted([INDEX, *read_index(untrained_model / INDEX).files])
        assert heedful.load(untrained_model).score("red dog", "dog").token_scores == before
        digests.add(content_digest(untrained_model))
    assert len(digests) == 3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("opened", "limit"), [("WeightsFile", LIMIT), ("WeightShards", 10**9)])
def test_weights_that_are_replaced_as_they_are_opened_are_the_new_ones(
    engine: str, opened: str, limit: int, untrained_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, others = heedful.load(untrained_model, engine="torch"), []
    expected = model.score("red dog", "dog").token_scores
    if opened == "WeightShards":
        heedful.save(model, untrained_model, shard_bytes=LIMIT)
    real = getattr(weight_shards, opened)

    def replaced(path: Path) -> object:
        if not others:
            others.append(path)
            heedful.save(model, untrained_model, shard_bytes=limit)
        return real(path)

    monkeypatch.setattr(weight_shards, opened, replaced)
    found = heedful.load(untrained_model, engine=engine)
    assert others and found.score("red dog", "dog").token_scores == pytest.approx(expected, abs=1e-5)


def test_a_server_does_not_mix_shards_of_two_saves(sharded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, copied = shutil.copyfile, []

    def copy(source: Path, target: Path) -> object:
        copied.append(source)
        if len(copied) == 2:
            save_changed(sharded, 1.5)
        return real(source, target)

    monkeypatch.setattr(shutil, "copyfile", copy)
    with (
        pytest.raises(UserError, match="was changed while it was read: try again when it is complete"),
        private_models(ServerSettings({"m": str(sharded)})),
    ):
        raise AssertionError("a copy was made")


def test_a_server_takes_a_copy_of_all_shards_and_of_no_others(sharded: Path) -> None:
    (sharded / "model-b-00001-of-00002.safetensors").write_bytes(b"of a save that was killed")
    with private_models(ServerSettings({"m": str(sharded)})) as settings:
        copied = Path(settings.models["m"])
        assert [each.name for each in shards_of(copied)] == read_index(sharded / INDEX).files
        assert heedful.load(copied).score("red dog", "dog") == heedful.load(sharded).score("red dog", "dog")


def test_looking_into_shards_that_were_replaced_is_refused(sharded: Path) -> None:
    model = heedful.load(sharded, engine="core")
    assert model.attention("red dog")
    model = heedful.load(sharded, engine="core")
    save_changed(sharded, 1.5)
    with pytest.raises(UserError, match="has been replaced since it was loaded: load it again"):
        model.attention("red dog")


def test_the_command_info_tells_of_shards(sharded: Path, run) -> None:
    assert b"translation" in run("info", sharded).stdout
    _flip(sharded)
    assert b"is damaged" in run("info", sharded, code=2).stderr
