"""The page as a file: what is in it, what is not, and how large it is."""

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from heedful.inspection.attention.attention_page import VIEWER_MODULES
from heedful.inspection.attention.maps import AttentionMap, AttentionMaps, Positions
from heedful.inspection.attention.predictions import Prediction
from heedful.inspection.standalone_page import page_file

EVIL = "<img src=x onerror=alert(1)></script><!-- data -->"


def random_maps(layers: int, heads: int, tokens: int, spread: float = 1.0) -> AttentionMaps:
    random = np.random.default_rng(1)
    maps = []
    for layer in range(layers):
        scores = random.normal(0, spread, (heads, tokens, tokens)).astype(np.float32)
        weights = np.exp(scores)
        maps.append(AttentionMap("encoder", layer, "source", "source", weights / weights.sum(-1, keepdims=True)))
    return AttentionMaps("a model", "encoder_only", {"source": Positions.in_a_row(["word"] * tokens)}, maps)


@pytest.fixture(scope="module")
def small() -> AttentionMaps:
    maps = random_maps(2, 3, 5)
    labels = ["a", EVIL, "ü", "\u2028", "\\"]
    outputs = (Prediction(EVIL, 0.5, (("b", 0.25),), ("source", 1)),)
    return replace(maps, model=EVIL, sequences={"source": Positions.in_a_row(labels)}, outputs=outputs)


def test_the_data_is_whole_and_text_is_never_markup(small: AttentionMaps) -> None:
    page = small.html()
    assert "<img" not in page and page.count("</script>") == 2 and page.count("<!--") == 0
    data = re.search(r'<script type="application/json" id="document">(.*?)</script>', page, re.DOTALL)
    document = json.loads(data[1])
    plain = small.to_json()
    assert document["sequences"] == plain["sequences"] and document["outputs"] == plain["outputs"]
    assert document["outputs"][0]["place"] == {"sequence": "source", "position": 1}
    assert [each["entropy"] for each in document["maps"]] == [each["entropy"] for each in plain["maps"]]
    json.dumps(plain)


def test_nothing_comes_from_elsewhere_and_only_its_own_program_runs(small: AttentionMaps) -> None:
    page = small.html()
    assert not re.findall(r"https?://|//[a-z]+\.[a-z]+/|@import|url\(", page)
    program = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)[1]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    for text in (program, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in page
    assert not re.search(r"^\s*(import|export)\b", program, re.MULTILINE)
    assert "default-src 'none'" in page
    assert not re.search(r"<[^>]+ (style|on\w+)=", page)


def test_modules_come_behind_those_that_they_import_and_share_no_name() -> None:
    names: list[str] = []
    for place, file in enumerate(VIEWER_MODULES):
        text = page_file(file)
        assert set(re.findall(r'from "\./(\w+\.js)"', text)) <= set(VIEWER_MODULES[:place])
        names += re.findall(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", text, re.MULTILINE)
        assert "innerHTML" not in text and "insertAdjacentHTML" not in text
    assert len(names) == len(set(names))


def test_json_has_three_significant_digits(small: AttentionMaps) -> None:
    document = small.to_json()
    found = np.array(document["maps"][1]["weights"])
    np.testing.assert_allclose(found, small.weights("encoder")[1], rtol=0.00501)
    assert all(float(f"{value:.2e}") == value for value in found.ravel().tolist())
    np.testing.assert_allclose(np.array(document["rollouts"][0]["weights"]), small.rollout("encoder"), rtol=0.00501)


def test_a_notebook_shows_it_in_a_frame_of_its_own(small: AttentionMaps) -> None:
    frame = small._repr_html_()
    assert frame.startswith('<iframe title="Attention" sandbox="allow-scripts" srcdoc="')
    assert "<script" not in frame and frame.count('"') == 8


@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_the_largest_page_is_at_most_twenty_megabytes(spread: float) -> None:
    """16 layers of 16 heads over 200 tokens, random, so that nothing packs well: two layers of them stand for all."""
    small, large = (len(random_maps(layers, 16, 200, spread).html().encode()) for layers in (1, 2))
    assert small + 15 * (large - small) < 20_000_000
