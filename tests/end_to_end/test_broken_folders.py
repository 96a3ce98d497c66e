"""Commands on damaged model folders: one line that names the file, and exit code 2."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.encoder_only import EncoderOnly
from heedful.models.vision import Vision
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.vision import VisionConfig
from heedful.text.tokenizer import Tokenizer
from mutations import change

COMMANDS = {
    "model": (["info"], ["translate"], ["inspect", "red dog"], ["serve", "--port", "0"], ["evaluate"], ["score"]),
    "encoder": (["embed"], ["inspect", "red dog"]),
    "vision": (["classify", "a.png"], ["inspect", "a.png"]),
}
CASES = [(kind, command) for kind, commands in COMMANDS.items() for command in commands]
SIZE = {"model": "width", "encoder": "width", "vision": "channels"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    place, tokenizer = tmp_path_factory.mktemp("folders"), Tokenizer.train(["red dog"], 263)
    encoder, vision = EncoderOnlyConfig(263, 24, 29), VisionConfig((8, 8), (4, 4), 3, 2, 24)
    config = ModelConfig("encoder_only", "encoder", encoder)
    save_model_folder(place / "encoder", EncoderOnly(encoder), tokenizer, config, "card")
    config = ModelConfig("vision", "image_classifier", vision, labels=("no", "yes"))
    save_model_folder(place / "vision", Vision(vision), None, config, "card")
    return place


@pytest.mark.parametrize(("kind", "command"), CASES, ids=lambda each: each if isinstance(each, str) else each[0])
def test_a_command_says_what_is_wrong_with_the_folder(
    kind: str, command: list[str], folders: Path, untrained_model: Path, tmp_path: Path, run
) -> None:
    folder = untrained_model
    if kind != "model":
        folder = Path(shutil.copytree(folders / kind, tmp_path / "copy"))
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / "a.png")
    (tmp_path / "text").write_text("red dog\n")
    verb, *others = [str(tmp_path / each) if each == "a.png" else each for each in command]
    if verb == "evaluate":
        others = ["--source", str(tmp_path / "text"), "--reference", str(tmp_path / "text")]
    elif verb == "score":
        others = ["--source", str(tmp_path / "text"), "--target", str(tmp_path / "text")]
    elif verb == "inspect":
        others += ["--out", str(tmp_path / "page.html")]
    right = (folder / "config.json").read_text()
    stack = "encoder" if kind == "model" else "stack"
    wrong_settings = [{f"model__{stack}__num_layers": 10**9}, {f"model__{SIZE[kind]}": "x"}, {"family": []}]
    for wrong in wrong_settings[:1] if verb == "serve" else wrong_settings:
        (folder / "config.json").write_text(right)
        change(folder / "config.json", **wrong)
        result = run(verb, folder, *others, stdin=b"red dog\n", code=2)
        lines = result.stderr.decode().strip().splitlines()
        assert len(lines) == 1, lines
        assert lines[0].startswith("heedful: ")
        assert "config.json" in lines[0]
        assert result.stdout == b""
