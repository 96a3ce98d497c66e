import numpy as np
import pytest

from heedful.errors import UserError
from heedful.text.training_lines import TrainingLines, measure_lines


def test_the_percentiles_are_those_of_the_lines() -> None:
    texts = ["One."] * 98 + ["One. Two."] * 2 + ["One. Two. Three."]
    lengths = np.array([7] * 50 + [11] * 50 + [53])
    assert measure_lines(lengths, texts.__getitem__, "en") == TrainingLines(11, 11, 53, 1, 2, 3)
    assert measure_lines(lengths[:100], texts[1:].__getitem__, "en") == TrainingLines(7, 11, 11, 1, 2, 3)


def test_absurd_records_are_refused() -> None:
    with pytest.raises(UserError, match=r"training_lines.subwords_99 is -5"):
        TrainingLines(1, -5, 7, 1, 1, 1)
