import json
import re
from typing import Any

import numpy as np
import pytest

from heedful.inspection.run.run_record import read_run
from heedful.inspection.run.training_page import MOST_POINTS, training_document, training_page


def document_in(page: str) -> dict[str, Any]:
    return json.loads(re.search(r'id="document">(.*?)</script>', page, re.DOTALL)[1])


def test_a_long_run_is_drawn_as_means_that_lose_no_spike(write_run, step_row) -> None:
    rows = [step_row(number) for number in range(1, 3001)]
    rows[1500]["loss"], rows[1501]["gradient_norm"] = 77.0, 99.0
    steps = training_document(read_run(write_run(rows)))["steps"]
    size = -(-3000 // MOST_POINTS)
    assert len(steps["loss"]) == 3000 // size
    parts = [rows[start : start + size] for start in range(0, 3000, size)]
    means = [np.average([r["loss"] for r in part], weights=[r["target_tokens"] for r in part]) for part in parts]
    np.testing.assert_allclose(steps["loss"], means, rtol=1e-5)
    assert max(steps["loss_high"]) == 77 and max(steps["gradient_norm_high"]) == 99
    assert steps["step"] == [part[-1]["step"] for part in parts]
    speed = [sum(r["target_tokens"] for r in part) / sum(r["seconds"] for r in part) for part in parts]
    np.testing.assert_allclose(steps["tokens_per_second"], speed, rtol=1e-5)


def test_the_page_needs_no_network_and_no_text_of_the_run_becomes_markup(write_run, step_row, validation_row) -> None:
    wicked = "</script><img src=x onerror=alert(1)>\u2028"
    rows = [step_row(1), validation_row(1, examples=[{"source": wicked, "translation": ""}])]
    page = training_page(read_run(write_run(rows)))
    assert "<img" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"^(import|export) ", page, re.MULTILINE)
    document = document_in(page)
    assert document["validations"][0]["examples"][0]["source"] == wicked
    assert document["validations"][0]["scores"] == {"BLEU": 3.5}
    assert document["state"] == "finished"


def test_numbers_that_json_cannot_hold_are_left_out(write_run, step_row, validation_row) -> None:
    page = training_page(read_run(write_run([step_row(1), validation_row(1, loss=float("nan"))], finished=False)))
    assert document_in(page)["validations"][0]["loss"] is None


def test_a_run_that_was_stopped_says_why(write_run, step_row) -> None:
    failure = {"kind": "failure", "step": 2, "reason": "the loss is nan"}
    document = document_in(training_page(read_run(write_run([step_row(1), failure], finished=False))))
    assert (document["state"], document["verdict"]) == ("stopped", "divergence")
    assert "the loss is nan" in document["findings"][0]["evidence"]


@pytest.mark.parametrize("steps", [0, 1])
def test_a_page_of_hardly_anything(write_run, step_row, steps: int) -> None:
    document = document_in(training_page(read_run(write_run([step_row(1)] * steps, finished=False))))
    assert document["totals"]["steps"] == steps
    assert document["verdict"] == "too short to judge"
