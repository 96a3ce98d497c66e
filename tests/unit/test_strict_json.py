"""JSON that is read strictly: what everybody reads alike, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.config import parse_json

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
)


@given(value=VALUES, escaped=st.booleans())
def test_what_is_right_is_read_as_always(value: object, escaped: bool) -> None:
    assert parse_json(json.dumps(value, ensure_ascii=escaped)) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "b": {"c": 2, "c": 3}}', "the key 'c' is there twice"),
        ('{"a": NaN}', "'a': NaN is not a finite number"),
        ('{"a": 1, "b": {"c": -Infinity}}', "'c': -Infinity is not a finite number"),
        ('{"a": 1e400}', "'a': 1e400 is not a finite number"),
        ("[[1e400]]", "1e400 is not a finite number"),
        ('{"a": %s}' % ("7" * 4001), "'a': 7777.* is too large a number: it has 4001 digits"),
        (r'{"a": ["x", "\ud800"]}', r"\\ud800 is half of a character"),
        (r'{"\udfff": 1}', r"\\udfff is half of a character"),
        ("[" * 10**5, "it is nested too deeply"),
        ('{"a": 1', "Expecting"),
    ],
)
def test_what_is_not(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        parse_json(text)
