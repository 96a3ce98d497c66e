"""The settings of a classifier of pairs."""

from dataclasses import replace
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.model_folder import save_model_folder
from heedful.models.encoder_only import EncoderOnly
from heedful.settings.embedding import EmbeddingConfig
from heedful.tasks.labelling.job import ClassifierData
from tests.small_folders import small_models

SINGLE = "".join(f"{'yes' if number % 2 else 'no'}\tred dog {number}\n" for number in range(41))
PAIRS = SINGLE.replace("\n", "\tdog\n")


def completed(folder: Path, segments: int, train: str, valid: str) -> int:
    """The segments of a classifier that starts from a model with so many of them."""
    _, tokenizer, config = small_models()["masked_language_model"]
    settings = replace(config.model, embedding=EmbeddingConfig(segments=segments))
    save_model_folder(folder / "start", EncoderOnly(settings), tokenizer, replace(config, model=settings), "card")
    for name, lines in (("train", train), ("valid", valid)):
        (folder / f"{name}.tsv").write_text(lines)
    data, valid_data = ((str(folder / f"{name}.tsv"),) for name in ("train", "valid"))
    job = ClassifierData(data, valid_data, str(folder / "start"))
    found = job.prepare(folder / "run", {}, lambda *_: None, None).complete(settings)
    return found.embedding.segments


@pytest.mark.parametrize(
    ("segments", "train", "valid", "expected"),
    [
        (0, SINGLE, SINGLE, 0),
        (1, SINGLE, SINGLE, 1),
        (0, PAIRS, PAIRS, 2),
        (0, SINGLE, PAIRS, 2),
        (3, PAIRS, PAIRS, 3),
    ],
)
def test_a_model_to_start_from_gets_segments_for_pairs(
    tmp_path: Path, segments: int, train: str, valid: str, expected: int
) -> None:
    assert completed(tmp_path, segments, train, valid) == expected


@pytest.mark.parametrize(("train", "valid"), [(PAIRS, SINGLE), (SINGLE, PAIRS)])
def test_pairs_are_refused_by_a_model_of_one_segment(tmp_path: Path, train: str, valid: str) -> None:
    with pytest.raises(
        UserError, match=r"start takes single texts \(its embedding.segments is 1\): start from another"
    ):
        completed(tmp_path, 1, train, valid)
