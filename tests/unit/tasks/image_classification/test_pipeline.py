from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from PIL import Image

import heedful
from heedful.cli.classify import classify
from heedful.errors import UserError
from heedful.model_folder import ModelConfig, load_model_folder, save_model_folder
from heedful.models.vision import Vision
from heedful.settings.attention import AttentionConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import PixelConfig, VisionConfig

IMAGES = np.random.Generator(np.random.PCG64(1)).integers(0, 256, (41, 13, 17, 3), np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    stack = StackConfig(num_layers=2, norm="pre", attention=AttentionConfig(num_heads=3))
    pixels = PixelConfig((0.4, 0.5, 0.6), (0.2, 0.3, 0.1))
    settings = VisionConfig((13, 17), (5, 4), 3, 7, 24, pixels=pixels, stack=stack)
    config = ModelConfig("vision", "image_classifier", settings, labels=tuple("abcdefg"), has_tokenizer=False)
    save_model_folder(tmp_path / "model", Vision(settings), None, config, "card")
    return tmp_path / "model"


def test_save_and_load_give_the_same_bits(folder: Path, tmp_path: Path) -> None:
    loaded = load_model_folder(folder)
    save_model_folder(tmp_path / "again", loaded.network, None, loaded.config, "card")
    again = load_model_folder(tmp_path / "again")
    images = torch.randn(5, 3, 13, 17)
    with torch.inference_mode():
        assert torch.equal(loaded.network(images), again.network(images))
    assert again.config == loaded.config
    assert sorted(each.name for each in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]


def test_the_model_says_what_it_says_through_the_pipeline(folder: Path) -> None:
    classifier = heedful.load(folder)
    results = classifier.classify(IMAGES)
    with torch.inference_mode():
        pixels = torch.from_numpy(IMAGES.transpose(0, 3, 1, 2) / 255).float()
        centred = (pixels - torch.tensor([0.4, 0.5, 0.6])[:, None, None]) / torch.tensor([0.2, 0.3, 0.1])[:, None, None]
        expected = classifier.model(centred).softmax(-1)
    for result, row in zip(results, expected, strict=True):
        assert result.label == "abcdefg"[row.argmax()]
        assert result.probability == pytest.approx(float(row.max()), abs=1e-5)
        assert [label for label, _ in result.ranking] == ["abcdefg"[place] for place in row.argsort(descending=True)]


@pytest.mark.parametrize("resolution", [None, 29, (7, 40)])
def test_probabilities_do_not_depend_on_the_batch(folder: Path, resolution) -> None:
    classifier = heedful.load(folder)
    together = classifier.classify(IMAGES, resolution)
    assert [classifier.classify([image], resolution)[0] for image in IMAGES[:5]] == together[:5]
    assert classifier.classify(IMAGES[:11], resolution) == together[:11]


def test_files_arrays_and_images_give_the_same(folder: Path, tmp_path: Path) -> None:
    classifier = heedful.load(folder)
    Image.fromarray(IMAGES[0]).save(tmp_path / "a.png")
    expected = classifier.classify([IMAGES[0]])
    for given in (str(tmp_path / "a.png"), tmp_path / "a.png", Image.fromarray(IMAGES[0])):
        assert [classifier.classify(given)] == classifier.classify([given]) == expected
    assert classifier.classify([]) == []


def test_tensors_are_read_like_arrays(folder: Path) -> None:
    classifier = heedful.load(folder)
    grey, colours = IMAGES[0, :, :, 0], IMAGES[0]
    for each in (grey, colours):
        assert classifier.classify(torch.from_numpy(each)) == classifier.classify(each)
    expected = classifier.classify(list(IMAGES[:5]))
    assert classifier.classify(torch.from_numpy(IMAGES[:5])) == classifier.classify(IMAGES[:5]) == expected
    assert classifier.classify([torch.from_numpy(each) for each in IMAGES[:5]]) == expected
    assert classifier.classify(grey[None]) == [classifier.classify(grey)]
    for dtype in (torch.float32, torch.bfloat16):
        with pytest.raises(
            UserError, match=r"^an image cannot be read as an image: an array of float32, expected uint8"
        ):
            classifier.classify(torch.zeros(28, 28, dtype=dtype))


def test_channels_that_come_first_are_refused(folder: Path) -> None:
    classifier = heedful.load(folder)
    first = np.ascontiguousarray(IMAGES[0].transpose(2, 0, 1))
    for given in (first, torch.from_numpy(first)):
        with pytest.raises(
            UserError, match=r"^images are an array of the shape \(3, 13, 17\): if it is one image, move its"
        ):
            classifier.classify(given)
        for several in ([given], given[None]):
            with pytest.raises(
                UserError, match=r"an array of the shape \(3, 13, 17\), expected H W, or H W C with 1, 3 or"
            ):
                classifier.classify(several)
    assert len(classifier.classify(list(first))) == len(classifier.classify(IMAGES[:3])) == 3
    assert len(classifier.classify(IMAGES[:4, :, :, 0])) == 4
    assert classifier.classify(torch.from_numpy(first).permute(1, 2, 0)) == classifier.classify(IMAGES[0])


def test_mistakes(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(UserError, match=r"text\.png cannot be read as an image"):
        heedful.load(folder).classify(tmp_path / "text.png")
    with pytest.raises(UserError, match="resolution is 0, but must be a whole number from 1"):
        heedful.load(folder).classify(IMAGES, resolution=0)
    with pytest.raises(UserError, match="takes images, and max_length is for text"):
        heedful.load(folder, max_length=5)
    for arguments, message in ((["x.png", "--resolution", "3y4"], "expected a number of pixels"), ([], "no images")):
        result = CliRunner().invoke(classify, [str(folder), *arguments])
        assert isinstance(result.exception, UserError)
        assert message in str(result.exception)
