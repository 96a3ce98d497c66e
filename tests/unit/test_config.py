import codecs
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.config import from_dict, merge, parse_assignment, read_json, read_toml, to_dict
from heedful.errors import UserError


@dataclass(frozen=True)
class Inner:
    count: int = 3
    rate: float | None = None
    kind: Literal["post", "pre"] = "post"


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner = field(default_factory=Inner)
    files: tuple[str, ...] = ()
    flag: bool = False


@given(
    st.builds(
        Outer, st.text(), st.builds(Inner, st.integers(), st.none() | st.floats(allow_nan=False, allow_infinity=False))
    )
)
def test_round_trip(config: Outer) -> None:
    assert from_dict(Outer, to_dict(config)) == config


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"name": "a", "inner": {"cuont": 1}}, "unknown setting 'inner.cuont': did you mean 'count'"),
        ({"name": "a", "inner": {"kind": "per"}}, "did you mean 'pre'"),
        ({"name": "a", "inner": {"count": "many"}}, "setting 'inner.count' is 'many', expected a whole number"),
        ({"name": "a", "inner": {"count": True}}, "expected a whole number"),
        ({"name": "a", "flag": 1}, "expected true or false"),
        ({"name": "a", "inner": {"rate": float("nan")}}, "setting 'inner.rate' is nan, expected a finite number"),
        ({"name": "a", "inner": {"rate": float("-inf")}}, "expected a finite number"),
        ({"name": "a", "inner": 5}, "expected a table of settings"),
        ({}, "setting 'name' is missing"),
    ],
)
def test_mistakes_are_named_with_their_place(data: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_dict(Outer, data)


def test_whole_numbers_are_fine_for_fractions() -> None:
    assert from_dict(Inner, {"rate": 1}).rate == 1.0


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("model.decoder.num_layers=3", {"model": {"decoder": {"num_layers": 3}}}),
        ("a.rate=1e-3", {"a": {"rate": 1e-3}}),
        ("a.kind=pre", {"a": {"kind": "pre"}}),
        ("a.flag=true", {"a": {"flag": True}}),
        ("a.files=['x', 'y']", {"a": {"files": ["x", "y"]}}),
    ],
)
def test_assignments(text: str, data: dict) -> None:
    assert parse_assignment(text) == data


def test_an_assignment_without_value_is_refused() -> None:
    with pytest.raises(UserError, match="NAME=VALUE"):
        parse_assignment("model.width")


def test_merging_keeps_what_is_not_given() -> None:
    assert merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 5}}) == {"a": {"b": 5, "c": 2}, "d": 3}


def test_files_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_bytes(codecs.BOM_UTF8 + b"steps = 7\n")
    (tmp_path / "config.json").write_bytes(codecs.BOM_UTF8 + b'{"steps": 7}')
    assert read_toml(tmp_path / "settings.toml") == read_json(tmp_path / "config.json") == {"steps": 7}
