"""The limits of what is computed in one go."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from heedful.errors import UserError
from heedful.inspection.attention.maps import AttentionMap, AttentionMaps, Positions
from heedful.server.messages import ModelRequest
from heedful.server.worker.direct_requests import DirectRequests
from heedful.server.worker.reply import Reply
from heedful.tasks.direct_verb import ATTENTION
from heedful.tasks.image_classification import images
from heedful.tasks.image_classification.verbs import open_image


def encoded(kind: str, size=(7, 5)) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", size, (3, 5, 7)).save(buffer, kind)
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_usual_formats_are_read(kind: str) -> None:
    assert open_image(f"data:image/x;base64,{encoded(kind)}").size == (7, 5)


def test_formats_that_are_read_by_other_programs_are_refused() -> None:
    with pytest.raises(UserError, match="the image cannot be read: it is not an image of a format that is read"):
        open_image(encoded("EPS"))


def test_a_large_image_is_refused_before_it_is_unpacked(monkeypatch) -> None:
    monkeypatch.setattr(images, "MOST_PIXELS", 34)
    with pytest.raises(UserError, match="7 x 5 pixels, more than 34"):
        open_image(encoded("PNG"))


def test_so_many_weights_are_given_and_no_more(monkeypatch) -> None:
    positions = Positions.in_a_row(list("abc"))
    weights = np.full((2, 3, 3), 1 / 3, np.float32)
    maps = AttentionMaps(
        "m", "encoder_only", {"source": positions}, [AttentionMap("encoder", 0, *["source"] * 2, weights)]
    )

    class Pipeline:
        def attention(self, text: str) -> AttentionMaps:
            return maps

    from heedful.tasks import direct_cost as direct_size

    monkeypatch.setattr(direct_size, "MOST_WEIGHTS", 18)
    assert len(ATTENTION.compute(Pipeline(), ["a", "b"], {})) == 2
    monkeypatch.setattr(direct_size, "MOST_WEIGHTS", 17)
    with pytest.raises(UserError, match="there are 18 attention weights, and the server gives at most 17"):
        ATTENTION.compute(Pipeline(), ["a"], {})


def test_attention_that_is_too_much_is_refused_before_it_is_computed() -> None:
    from types import SimpleNamespace

    computed, sent = [], []
    stack = SimpleNamespace(num_layers=12, attention=SimpleNamespace(num_heads=12))
    pipeline = SimpleNamespace(
        model=SimpleNamespace(max_length=512),
        tokenizer=SimpleNamespace(encode=list),
        config=SimpleNamespace(model=SimpleNamespace(stack=stack, positions="alibi")),
        attention=lambda text: computed.append(text),
    )
    requests = DirectRequests({"m": pipeline})
    requests.add(Reply(ModelRequest("m", "attention", ["x" * 1000], number=1), sent.append))
    requests.step()
    assert not computed and sent[0].mistake and "there are 144,000,000 attention weights" in sent[0].message
