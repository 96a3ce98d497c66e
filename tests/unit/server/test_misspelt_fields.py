"""A misspelt field of a body is answered with the field that it stands for, wherever it is."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from heedful.server.front.errors import misfits
from heedful.server.front.openai_schemas import CompletionRequest
from heedful.server.front.translate_routes import TranslateRequest

EXTRA = "Extra inputs are not permitted"


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (TranslateRequest, {"text": "a", "beem": 5}, f"beem: {EXTRA}: did you mean 'beam'?"),
        (TranslateRequest, {"text": "a", "qqqqq{}": 5}, f"body: {EXTRA}"),
        (TranslateRequest, {"text": "a", "beam": 5, "beem": 5}, f"beem: {EXTRA}"),
        (
            TranslateRequest,
            {"text": "a", "scores": 3, "beem": 5},
            f"scores: Input should be a valid boolean; beem: {EXTRA}: did you mean 'beam'?",
        ),
        (
            CompletionRequest,
            {"model": "m", "prompt": "a", "stream_options": {"include_usge": True}},
            f"stream_options.include_usge: {EXTRA}: did you mean 'include_usage'?",
        ),
    ],
)
def test_the_nearest_field_is_named(kind: type[BaseModel], body: Any, expected: str) -> None:
    with pytest.raises(ValidationError) as raised:
        kind.model_validate(body)
    assert misfits(raised.value.errors()) == expected
