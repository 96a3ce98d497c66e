"""A model folder whose files are damaged, or of another model, is refused; one that is being replaced is not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

import heedful
from heedful import files, weights_writer
from heedful.core.weights import WeightsFile
from heedful.errors import UserError
from heedful.model_folder import load_model_folder, save_model_folder
from heedful.text.tokenizer import Tokenizer
from heedful.weights_seal import OWN, checksum_of
from mutations import change

ENGINES = ["core", "torch"]


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 4
    file.write_bytes(content)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bit_that_is_flipped_anywhere_is_found(engine: str, untrained_model: Path) -> None:
    file = untrained_model / "model.safetensors"
    right = file.read_bytes()
    header = 8 + int.from_bytes(right[:8], "little")
    places = [*range(0, header, 211), *range(header, len(right), len(right) // 29), len(right) - 1]
    for place in places:
        flip(file, place)
        with pytest.raises(UserError, match=r"model\.safetensors"):
            heedful.load(untrained_model, engine=engine)
        file.write_bytes(right)
    flip(file, header + 1001)
    with pytest.raises(UserError, match=r"model\.safetensors is damaged: it does not have the checksum"):
        heedful.load(untrained_model, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_damage_that_makes_nan_is_told_of_as_damage(engine: str, untrained_model: Path) -> None:
    file = untrained_model / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-4:] = b"\xff\xff\xff\x7f"
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"model\.safetensors is damaged: it does not have the checksum"):
        heedful.load(untrained_model, engine=engine)


def test_a_damaged_file_is_refused_although_a_whole_one_takes_its_place(untrained_model: Path) -> None:
    file = untrained_model / "model.safetensors"
    whole = file.read_bytes()
    flip(file, -1001)
    with WeightsFile(file) as opened:
        with files.replacing(file) as temporary:
            temporary.write_bytes(whole)
        for check in (opened.check, opened.check_pieces):
            with pytest.raises(UserError, match="is damaged"):
                check()


@pytest.mark.parametrize("verb", ["translate", "info", "serve", "evaluate"])
def test_commands_refuse_damaged_weights(verb: str, untrained_model: Path, tmp_path: Path, run) -> None:
    flip(untrained_model / "model.safetensors", -1001)
    (tmp_path / "pairs.tsv").write_text("red\tdog\n")
    more = {"serve": ["--port", "0"], "evaluate": ["--tsv", tmp_path / "pairs.tsv"], "translate": ["red"]}.get(verb, [])
    said = run(verb, untrained_model, *more, code=2).stderr.decode()
    assert f"{untrained_model / 'model.safetensors'} is damaged" in said and said.count("\n") == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_the_tokenizer_of_another_model_is_refused(engine: str, untrained_model: Path) -> None:
    file = untrained_model / "tokenizer.json"
    own = Tokenizer.load(file)
    other = Tokenizer.train(["blue cats", "gleaming"], own.vocabulary_size)
    assert other.vocabulary_size <= own.vocabulary_size
    other.save(file)
    with pytest.raises(UserError, match=r"tokenizer\.json is not the file that the model was written with: it is dam"):
        heedful.load(untrained_model, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "changes",
    [
        {"model__encoder__attention__num_heads": 2},
        {"model__decoder__norm_epsilon": 1e-3},
        {"model__special_tokens__start": 5},
    ],
)
def test_settings_that_others_weights_were_trained_with_are_refused(
    engine: str, changes: dict, untrained_model: Path
) -> None:
    """Each of them fits the shapes of the weights, and gives other answers."""
    change(untrained_model / "config.json", **changes)
    with pytest.raises(UserError, match=r"config\.json does not have the settings that model\.safetensors was writ"):
        heedful.load(untrained_model, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_names_of_languages_may_be_changed(engine: str, untrained_model: Path) -> None:
    change(untrained_model / "config.json", source_language="gsw", model__encoder__attention__dropout=0)  # it was 0.0
    assert heedful.load(untrained_model, engine=engine).config.source_language == "gsw"


@pytest.mark.parametrize("engine", ENGINES)
def test_folders_without_checksums_are_loaded(engine: str, untrained_model: Path) -> None:
    from mutations import unseal

    before = heedful.load(untrained_model, engine=engine).translate("red dog", beam=1).tokens
    assert heedful.load(unseal(untrained_model), engine=engine).translate("red dog", beam=1).tokens == before


def test_the_same_weights_are_the_same_bytes(untrained_model: Path, tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from heedful.model_folder import *\n"
        "loaded = load_model_folder(pathlib.Path(sys.argv[1]))\n"
        "save_model_folder(pathlib.Path(sys.argv[2]), loaded.network, loaded.tokenizer, loaded.config, '')"
    )
    for number in range(3):  # the library that writes them has an order of its own in every process
        command = [sys.executable, "-c", program, str(untrained_model), str(tmp_path / str(number))]
        subprocess.run(command, check=True, timeout=120)
    expected = (untrained_model / "model.safetensors").read_bytes()
    assert {(tmp_path / str(number) / "model.safetensors").read_bytes() for number in range(3)} == {expected}
    with safe_open(untrained_model / "model.safetensors", "np") as file:
        found = file.metadata()
    assert found["format"] == "pt"
    assert found["tokenizer_crc32"] == checksum_of((untrained_model / "tokenizer.json").read_bytes())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_save_that_is_killed_at_any_file_leaves_a_model_that_loads(
    engine: str, untrained_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is also what those see who load the model while a run replaces it."""
    loaded = load_model_folder(untrained_model)
    before = heedful.load(untrained_model, engine=engine).score("red dog", "dog").token_scores
    with torch.no_grad():
        for parameter in loaded.network.parameters():
            parameter.mul_(1.5)

    class Killed(BaseException):
        pass

    for survived in range(5):
        writes = iter([*[True] * survived, False])

        def replaced(temporary: Path, path: Path, replace=Path.replace, writes=writes) -> None:
            if not next(writes, True):
                raise Killed
            replace(temporary, path)

        monkeypatch.setattr(Path, "replace", replaced)
        try:
            save_model_folder(untrained_model, loaded.network, loaded.tokenizer, loaded.config, "card")
        except Killed:
            assert survived < 4
        monkeypatch.undo()
        after = heedful.load(untrained_model, engine=engine).score("red dog", "dog").token_scores
        assert (after == before) == (survived < 4)


def test_what_is_killed_while_it_seals_leaves_the_old_file(untrained_model: Path, monkeypatch) -> None:
    loaded, before = load_model_folder(untrained_model), (untrained_model / "model.safetensors").read_bytes()

    def fails(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(weights_writer, "seal", fails)
    with pytest.raises(UserError, match="the disk is full"):
        save_model_folder(untrained_model, loaded.network, loaded.tokenizer, loaded.config, "card")
    assert (untrained_model / "model.safetensors").read_bytes() == before
    assert sorted(each.name for each in untrained_model.glob("*writing*")) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loaded_model_does_not_heed_what_becomes_of_its_files(engine: str, untrained_model: Path) -> None:
    """In a process of its own: a mapped file that is cut short would end it."""
    program = (
        "import sys, heedful, pathlib\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "model = heedful.load(folder, engine=sys.argv[2])\n"
        "before = model.score('red dog', 'dog').token_scores\n"
        "with (folder / 'model.safetensors').open('r+b') as file:\n"
        "    file.seek(3000)\n"
        "    file.write(bytes(100_000))\n"
        "assert model.score('red dog', 'dog').token_scores == before\n"
        "(folder / 'model.safetensors').write_bytes(b'')\n"
        "assert model.score('red dog', 'dog').token_scores == before\n"
    )
    command = [sys.executable, "-c", program, str(untrained_model), engine]
    result = subprocess.run(command, capture_output=True, timeout=120)
    assert result.returncode == 0, (result.returncode, result.stderr.decode())


def test_looking_into_a_model_that_was_replaced_is_refused(untrained_model: Path) -> None:
    model = heedful.load(untrained_model, engine="core")
    loaded = load_model_folder(untrained_model)
    save_model_folder(untrained_model, loaded.network, loaded.tokenizer, loaded.config, "card")
    with pytest.raises(UserError, match="has been replaced since it was loaded: load it again"):
        model.attention("red dog")


def test_a_folder_that_another_program_calls_run_is_no_training(tmp_path: Path) -> None:
    (tmp_path / "run" / "lock").mkdir(parents=True)
    with pytest.raises(UserError, match="is not a model folder: it holds neither"):
        heedful.load(tmp_path)
    (tmp_path / "run" / "config.json").write_text("{}")
    with pytest.raises(UserError, match="its training has not come to its first validation"):
        heedful.load(tmp_path)


def test_a_path_is_asked_for() -> None:
    for wrong in (None, 3, b"model", ["model"]):
        with pytest.raises(UserError, match="must be the path of a model folder"):
            heedful.load(wrong)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_checksum_that_is_not_text_is_damage(engine: str, untrained_model: Path) -> None:
    file = untrained_model / "model.safetensors"
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"][OWN] = "\ud800"
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])
    with pytest.raises(UserError, match=r"model\.safetensors is damaged: it does not have the checksum"):
        heedful.load(untrained_model, engine=engine)
