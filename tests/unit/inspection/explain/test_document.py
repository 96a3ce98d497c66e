"""The data of the page: its numbers are those of the trace, and its lines of code are there."""

import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import UserError
from heedful.inspection.attention.weights import ALPHABET, BITS
from heedful.inspection.explain import document as document_file
from heedful.inspection.explain.document import Explained, leak
from heedful.inspection.explain.packed_floats import from_halves, packed_floats, to_halves
from heedful.inspection.trace.point import Point
from heedful.inspection.trace.trace import Trace
from heedful.tasks.explaining import Switches, explained
from traced_models import IMAGE, SOURCE, TARGET


def unpacked(step: dict) -> np.ndarray:
    """What the page makes of a step's text."""
    if "integers" in step:
        return np.array(step["integers"])
    places = np.array([ALPHABET.index(letter) for letter in step["packed"]["text"]])
    numbers = places[::2] * len(ALPHABET) + places[1::2]
    bits = (numbers[:, None] >> np.arange(BITS - 1, -1, -1)) & 1
    data = np.packbits(bits.ravel().astype(np.uint8)).tobytes()[: step["packed"]["bytes"]]
    planes = np.frombuffer(zlib.decompress(data), np.uint8)
    codes = planes[: len(planes) // 2] | planes[len(planes) // 2 :].astype(np.uint16) << 8
    return from_halves(codes.view(np.float16), step["packed"]["power"]).reshape(step["shape"])


def looked_at(case, switches: Switches | None = None) -> Explained:
    """An explanation of the input of a case; a translation is given, for random models write long ones."""
    if case.pipeline.config.family == "vision":
        return explained(case.pipeline, IMAGE, switches)
    translates = case.pipeline.config.family == "encoder_decoder"
    return explained(case.pipeline, SOURCE, switches, target=TARGET if translates else None)


def steps_of(document: dict) -> dict[str, dict]:
    return {step["name"]: step for part in document["parts"] for group in part["groups"] for step in group["steps"]}


def test_numbers_are_those_of_the_trace(case) -> None:
    page = looked_at(case)
    document, trace = json.loads(json.dumps(page.to_json(), allow_nan=False)), page.trace
    steps = steps_of(document)
    left_out = {name for name in trace if name.endswith(".mask")} | {"logits", "probabilities"}
    assert set(steps) == set(trace) - left_out
    for name, step in steps.items():
        exact = trace[name][0] if trace.letters(name).startswith("B") else trace[name]
        assert step["letters"] == trace.letters(name).removeprefix("B")
        np.testing.assert_allclose(unpacked(step), exact.numpy(), rtol=2**-10, atol=1e-7)
        labels = document["sequences"]
        if step["columns"]:
            assert exact.shape[-2:] == (len(labels[step["rows"]]), len(labels[step["columns"]])), name
    for row, answers in enumerate(document["answers"]):
        shares = trace["probabilities"][0].reshape(-1, trace["probabilities"].shape[-1])[row]
        assert [each["probability"] for each in answers] == pytest.approx(shares.topk(len(answers)).values.tolist())
        assert len(answers) == min(20, len(shares))


def test_code_is_where_the_page_says(case) -> None:
    package = Path(heedful.__file__).parent
    for name, step in steps_of(looked_at(case).to_json()).items():
        assert step["title"] and step["formula"] and step["about"], name
        assert not re.search(r"[{}]", step["formula"]), step["formula"]
        if step["code"]:
            lines = (package.parent / step["code"]["file"]).read_text(encoding="utf-8").splitlines()
            assert lines[step["code"]["line"] - 1].strip() == step["code"]["text"], name
        elif name.startswith(("encoder.", "decoder.", "blocks.")):
            raise AssertionError(f"{name} has no code")


def test_halves_keep_three_digits_of_any_size() -> None:
    values = np.random.default_rng(3).normal(size=997) * 10.0 ** np.linspace(-3, 3, 997)
    for factor in (1e-9, 1.0, 1e9):
        halves, power = to_halves(values * factor)
        np.testing.assert_allclose(from_halves(halves, power), values * factor, rtol=2**-11)
    halves, power = to_halves(np.array([-np.inf, 0.0, 0.25]))
    assert from_halves(halves, power).tolist() == [-np.inf, 0.0, 0.25]
    assert packed_floats(np.zeros(3))["power"] == 0


SWITCHES = [Switches(scaling=False), Switches(temperature=0.5), Switches(mask=False), Switches(positions=False)]


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda each: str(each)[9:-1])
def test_switches_change_what_they_say(case, switches: Switches) -> None:
    """What a switch changes first is what Python computes of what came before it; the rest follows."""
    plain, changed = (looked_at(case, each).trace for each in (Switches(), switches))
    if switches.temperature != 1:
        torch.testing.assert_close(changed["probabilities"], (plain["logits"] / 0.5).softmax(-1), atol=1e-5, rtol=1e-4)
    for name in changed:
        if not switches.scaling and name.endswith("attention.scaled"):
            assert torch.allclose(changed[name], changed[name.replace("scaled", "scores")], atol=1e-4)
            weights = changed[name.replace("scaled", "scores")]
            if name.replace("scaled", "masked") not in changed and name.replace("scaled", "bias") not in changed:
                torch.testing.assert_close(changed[name.replace("scaled", "weights")], weights.softmax(-1))
        if not switches.mask and name.endswith(".masked"):
            assert changed[name].isfinite().all()
        if not switches.positions and name.endswith((".positions", ".distance_scores", "positions.output")):
            assert not changed[name].any()


def test_what_leaks_without_the_mask_is_said_where_a_text_is_written(case) -> None:
    trace = looked_at(case).trace
    assert looked_at(case).to_json()["leak"] is None
    found = looked_at(case, Switches(mask=False)).to_json()["leak"]
    assert (found is not None and 0.1 < found < 1) if trace.written else found is None


def test_the_share_that_leaks_is_that_of_known_weights() -> None:
    name, tokens = "blocks.0.attention.weights", {"text": ["a"] * 5, "next": ["b"] * 5}
    for weights_TS, share in ((torch.full((5, 5), 0.2), 0.5), (torch.eye(5), 0.0), (torch.eye(5).roll(1, 1), 1.0)):
        # Uniform weights: 4, 3, 2 and 1 of five lie ahead; the last token has nothing ahead of it.
        trace = Trace("", "decoder_only", tokens, {name: Point(name, "BHTS", "text", "text")}, {name: weights_TS[None]})
        assert leak(trace) == pytest.approx(share)


@pytest.mark.parametrize("tokens", [1, 2])
def test_one_token_has_nothing_to_leak_to(tokens: int) -> None:
    name = "blocks.0.attention.weights"
    labels = {"text": ["a"] * tokens, "next": ["b"] * tokens}
    weights_HTS = torch.full((3, tokens, tokens), 1 / tokens)
    trace = Trace("", "decoder_only", labels, {name: Point(name, "BHTS", "text", "text")}, {name: weights_HTS})
    assert leak(trace) == (None if tokens == 1 else 0.5)


def test_a_page_of_one_token_can_be_made_without_the_mask(make_case) -> None:
    translator = make_case("encoder-decoder").pipeline
    page = explained(translator, SOURCE, Switches(mask=False), target="")
    assert len(page.trace.tokens[page.trace.written]) == 1
    assert page.to_json()["leak"] is None and page.html()


def test_without_positions_an_encoder_sees_a_set(make_case) -> None:
    """With them, the order of the tokens matters; without them, it does not."""
    pipeline = make_case("pair").pipeline
    texts = ("red dog home", "dog red home")
    ids = [pipeline.framed(text, None)[0].ids for text in texts]
    assert sorted(ids[0]) == sorted(ids[1]) and ids[0] != ids[1]
    for switches, same in ((Switches(), False), (Switches(positions=False), True)):
        one, other = (explained(pipeline, text, switches).trace["logits"] for text in texts)
        assert torch.allclose(one, other, atol=1e-5) == same


def test_a_head_that_is_off_gives_nothing(make_case) -> None:
    pipeline = make_case("xlnet").pipeline
    found = explained(pipeline, SOURCE, Switches(head_off=("blocks.1.query.attention", 2))).trace
    mixed = found["blocks.1.query.attention.mixed"]
    assert not mixed[:, 2].any() and mixed[:, :2].any() and found["blocks.0.content.attention.mixed"][:, 2].any()
    with pytest.raises(UserError, match=r"did you mean 'blocks\.1\.query\.attention'"):
        explained(pipeline, SOURCE, Switches(head_off=("blocks.1.query.attentio", 0)))
    with pytest.raises(UserError, match="head_off"):
        explained(pipeline, SOURCE, Switches(head_off=("blocks.1.query.attention", 3)))
    with pytest.raises(UserError, match="temperature"):
        Switches(temperature=0)


def test_a_page_that_would_be_too_large_is_refused(make_case, monkeypatch: pytest.MonkeyPatch) -> None:
    page = explained(make_case("class token").pipeline, IMAGE)
    monkeypatch.setattr(document_file, "MOST_NUMBERS", 5000)
    with pytest.raises(UserError, match=r"and 5,000 are the most: give less than these 16 tokens"):
        page.to_json()
