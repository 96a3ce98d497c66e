"""`heedful explain` as users run it."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import heedful
from heedful.cli.main import main
from heedful.model_folder import ModelConfig, save_model_folder
from heedful.models.recurrent import Recurrent
from heedful.settings.recurrent import RecurrentConfig
from heedful.tasks.explaining import explained
from heedful.text.tokenizer import Tokenizer


def document(page: Path) -> dict:
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="document">(.*?)</script>', text, re.DOTALL)
    assert found and "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    return json.loads(found[1])


def test_a_page_of_a_text_and_of_an_image(run, small_folders, tmp_path: Path) -> None:
    page = tmp_path / "explain.html"
    result = run("explain", small_folders["translation"], "red dog", "--target", "dog", "--out", page)
    assert result.stdout == b"" and str(page) in result.stderr.decode()
    model = heedful.load(small_folders["translation"])
    assert document(page) == json.loads(json.dumps(explained(model, "red dog", target="dog").to_json()))
    Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(tmp_path / "a.png")
    for arguments in (
        ["explain", str(small_folders["image_classifier"]), "--image", str(tmp_path / "a.png"), "--out", str(page)],
        ["explain", str(small_folders["tagging"]), "red dog", "--out", str(page)],
        ["explain", str(small_folders["encoder"]), "red dog", "--out", str(page)],
        ["explain", str(small_folders["language_model"]), "red dog", "--out", str(page)],
    ):
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
        assert document(page)["parts"]


def test_mistakes(small_folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = Tokenizer.train(["red dog"], 263)
    config = RecurrentConfig(words.vocabulary_size, 12, 12, 29)
    recurrent = ModelConfig("recurrent", "translation", config)
    save_model_folder(tmp_path / "rnn", Recurrent(config), words, recurrent, "card")
    for arguments, message in (
        ([str(tmp_path / "rnn"), "red dog"], "a recurrent model has no blocks of attention to trace"),
        (
            [str(small_folders["translation"]), "red " * 99],
            "is translated in 8 pieces, and one can be followed at a time: give one of",
        ),
        ([str(small_folders["translation"]), " "], "the text is blank"),
        ([str(small_folders["image_classifier"]), "red"], "classifies images: give --image FILE"),
        ([str(small_folders["translation"]), "--image", "a.png"], "holds no image classifier"),
        ([str(small_folders["translation"]), "red", "--resolution", "8"], "--resolution is the size of an image"),
        ([str(small_folders["translation"]), "red", "--out", str(tmp_path)], "is the name of a folder"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["explain", *arguments])
        error = capsys.readouterr().err
        assert error.startswith("heedful: ") and message in error and error.count("\n") == 1


def test_heads_of_another_sentence_change_the_translation(copy_model: Path) -> None:
    """As in docs/library.md: a head changes the score, all of them give the other sentence, and the model stays."""
    translator = heedful.load(copy_model)
    name, changed = "decoder.0.cross_attention.mixed", 0
    for text, other in (("red dog blue sea", "sun tree red green"), ("green tree sun", "red moon dog"), ("dog", "sea")):
        given = translator.trace(other)[name]
        whole = translator.translate(text).score

        def borrowed(heads: list[int], given: torch.Tensor = given) -> Callable[[torch.Tensor], torch.Tensor]:
            def patch(mixed_BHTV: torch.Tensor) -> torch.Tensor:
                length = min(mixed_BHTV.shape[2], given.shape[2])
                mixed_BHTV[:, heads, :length] = given[:, heads, :length]
                return mixed_BHTV

            return patch

        for head in range(4):
            with translator.patched({name: borrowed([head])}) as patched:
                changed += abs(patched.translate(text).score - whole) > 1e-4
        with translator.patched({name: borrowed([0, 1, 2, 3])}) as patched:
            assert patched.translate(text).text == other
        assert translator.translate(text).text == text
    assert changed == 12  # every head matters
    last = "encoder.1.feed_forward_residual.output"
    with translator.patched({last: translator.trace("blue sea")[last]}) as patched:
        assert patched.translate("red dog").text == "blue sea"
