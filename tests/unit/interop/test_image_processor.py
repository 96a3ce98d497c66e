"""What preprocessor_config.json asks for, compared with the image processors of transformers; the rest is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import UserError
from heedful.interop.huggingface import import_folder

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()


def vit_folder(folder: Path, preprocessing: dict | None, image_size=(15, 20), patch_size=(5, 4)):
    """A ViT of three classes with random weights, and what its folder says of images."""
    torch.manual_seed(3)
    sizes = {"hidden_size": 21, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 37}
    settings = transformers.ViTConfig(image_size=image_size, patch_size=patch_size, num_labels=3, **sizes)
    model = transformers.ViTForImageClassification(settings).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder)
    if preprocessing is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(preprocessing))
    return model


def picture(height: int, width: int, seed: int = 7) -> np.ndarray:
    generator = np.random.default_rng(seed)
    coarse = generator.integers(0, 256, (height // 3 + 1, width // 3 + 1, 3), np.uint8)
    return np.ascontiguousarray(coarse.repeat(3, 0).repeat(3, 1)[:height, :width])


EXACT = {"height": 15, "width": 20}
FOLLOWED = [
    {"size": EXACT, "resample": 2},
    {"size": EXACT, "resample": 3},
    {"size": EXACT, "resample": 0},
    {"size": EXACT, "resample": 1, "image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.6, 0.7]},
    {"size": EXACT, "do_normalize": False},
    {"size": EXACT, "do_rescale": False, "image_mean": [127.0, 120.0, 110.0], "image_std": [50.0, 60.0, 70.0]},
    {"size": EXACT, "do_rescale": False, "do_normalize": False},
    {"size": EXACT, "rescale_factor": 0.01},
    {"size": {"height": 19, "width": 27}, "do_center_crop": True, "crop_size": EXACT, "resample": 3},
    {"size": {"shortest_edge": 23}, "do_center_crop": True, "crop_size": EXACT, "resample": 3},
]


@pytest.mark.parametrize("shape", [(37, 53), (61, 29), (15, 20)], ids=str)
@pytest.mark.parametrize("settings", FOLLOWED, ids=str)
@torch.inference_mode()
def test_images_are_read_as_the_folder_says(settings: dict, shape: tuple[int, int], tmp_path: Path) -> None:
    model = vit_folder(tmp_path / "theirs", settings)
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    image = picture(*shape)
    ours = dict(heedful.load(tmp_path / "ours").classify([image])[0].ranking)
    pixels = transformers.ViTImageProcessorPil(**settings)(image, return_tensors="pt")["pixel_values"]
    theirs = model(pixels).logits.softmax(-1)[0]
    found = torch.tensor([ours[f"LABEL_{number}"] for number in range(3)])
    torch.testing.assert_close(found, theirs, atol=2e-5, rtol=0)


def test_evaluation_and_attention_read_images_in_the_same_way(tmp_path: Path, run) -> None:
    from PIL import Image

    settings = {"size": {"shortest_edge": 23}, "do_center_crop": True, "crop_size": EXACT, "resample": 3}
    theirs = vit_folder(tmp_path / "theirs", settings)
    images = [picture(37, 53, seed) for seed in range(40)]
    with torch.no_grad():  # a bias that makes all classes about as frequent
        pixels = transformers.ViTImageProcessorPil(**settings)(images, return_tensors="pt")["pixel_values"]
        theirs.classifier.bias -= theirs(pixels).logits.mean(0)
    theirs.save_pretrained(tmp_path / "theirs")
    run("import", tmp_path / "theirs", tmp_path / "ours")
    model = heedful.load(tmp_path / "ours")
    for label in model.labels:
        (tmp_path / "images" / label).mkdir(parents=True)
    labels = [each.label for each in model.classify(images)]
    assert len(set(labels)) == 3
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        Image.fromarray(image).save(tmp_path / "images" / label / f"{number}.png")
    assert b"accuracy  1.0000" in run("evaluate", tmp_path / "ours", "--images", tmp_path / "images").stdout
    assert model.attention(picture(37, 53)).to_json()["image"]["size"] == [15, 20]


def test_at_another_resolution_the_cut_is_in_proportion(tmp_path: Path) -> None:
    settings = {"size": {"height": 30, "width": 40}, "do_center_crop": True, "crop_size": EXACT}
    vit_folder(tmp_path / "theirs", settings)
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    model = heedful.load(tmp_path / "ours")
    # Half of the height and width is cut away: what is there changes nothing.
    image = picture(120, 160)
    framed = image.copy()
    framed[:20], framed[-20:], framed[:, :30], framed[:, -30:] = 0, 255, 0, 255
    for resolution in (None, (30, 40)):
        found, expected = (model.classify([each], resolution)[0].ranking for each in (framed, image))
        assert found == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": EXACT, "do_resize": False}, "do_resize is False"),
        ({"size": {"height": 30, "width": 20}}, "size is 30x20, but the model's image_size is 15x20"),
        ({"size": {"shortest_edge": 15}}, "size is 15"),
        ({"size": {"longest_edge": 15}}, "size is"),
        ({"size": EXACT, "do_center_crop": True, "crop_size": 15}, "crop_size is 15x15"),
        ({"size": {"shortest_edge": 17}, "do_center_crop": True, "crop_size": EXACT}, "larger than size"),
        ({"size": EXACT, "resample": 7}, "resample is 7"),
        ({"size": EXACT, "resample": "bicubic"}, "resample is 'bicubic'"),
        ({"size": EXACT, "do_pad": True}, "do_pad"),
        ({"size": EXACT, "do_normalize": "no"}, "do_normalize is 'no'"),
        ({"size": EXACT, "rescale_factor": 0}, "rescale_factor is 0"),
        ({"size": EXACT, "rescale_offset": True}, "rescale_offset"),
        ({"size": EXACT, "image_mean": [0.5, 0.5]}, "image_mean"),
        ({"size": EXACT, "image_std": [0.5, 0.0, 0.5]}, "image_std"),
        ({"size": 224, "image_processor_type": "CLIPImageProcessor"}, "size is 224"),
    ],
    ids=str,
)
def test_what_is_not_supported_is_refused_by_name(settings: dict, message: str, tmp_path: Path) -> None:
    vit_folder(tmp_path / "theirs", settings)
    with pytest.raises(UserError, match=message) as raised:
        import_folder(tmp_path / "theirs", tmp_path / "ours")
    assert "preprocessor_config.json" in str(raised.value)


def test_a_folder_that_says_nothing_of_images_gets_a_remark(tmp_path: Path) -> None:
    vit_folder(tmp_path / "theirs", None)
    assert "no preprocessor_config.json" in import_folder(tmp_path / "theirs", tmp_path / "ours").remarks[0]


@pytest.mark.parametrize("size", [(16, 20), 224, [15, 20, 25], "15", 0, None], ids=str)
def test_sizes_that_do_not_fit_are_refused(size: object, tmp_path: Path) -> None:
    vit_folder(tmp_path / "theirs", None, image_size=(15, 20), patch_size=(5, 4))
    file = tmp_path / "theirs" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"image_size": size}))
    with pytest.raises(UserError, match="image_size"):
        import_folder(tmp_path / "theirs", tmp_path / "ours")
