"""Whatever a safetensors file holds, reading it succeeds or is a UserError that names it, soon and in little memory."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_folders import core_model, family_settings, save
from heedful.core.weights import WeightsFile
from heedful.errors import UserError
from mutations import little_time_and_memory, mutated

A = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
B = {"dtype": "F16", "shape": [5], "data_offsets": [24, 34]}


def write(file: Path, header: object, size: int | None = None, length: int = 34) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    announced = len(text) if size is None else size
    file.write_bytes(announced.to_bytes(8, "little") + text + bytes(range(length)))
    return file


def test_a_proper_file(tmp_path: Path) -> None:
    file = write(tmp_path / "file", {"b": B, "a": A, "__metadata__": {"format": "pt"}})
    with WeightsFile(file) as opened:
        assert {name: each.shape for name, each in opened.tensors.items()} == {"a": (2, 3), "b": (5,)}
        assert opened.read("b").tolist() == list(range(24, 34))
        assert np.array_equal(opened.floats("a"), np.frombuffer(bytes(range(24)), np.float32).reshape(2, 3))
        assert opened.read("a").tolist() == list(range(24))
    with pytest.raises(ValueError, match="closed"):
        opened.file.read()


def test_all_types_are_read_as_floats(tmp_path: Path) -> None:
    numbers = np.array([0.0, -1.5, 2.0**-10, 65504.0, -(2.0**-24), 1.0 / 3], np.float64)
    for kind, stored in (
        ("F64", numbers),
        ("F32", numbers.astype(np.float32)),
        ("F16", numbers.astype(np.float16)),
        ("BF16", (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)),
    ):
        raw = stored.tobytes()
        header = json.dumps({"x": {"dtype": kind, "shape": [2, 3], "data_offsets": [0, len(raw)]}}).encode()
        (tmp_path / "file").write_bytes(len(header).to_bytes(8, "little") + header + raw)
        with WeightsFile(tmp_path / "file") as opened:
            found = opened.floats("x")
        expected = (stored.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else stored.astype(np.float32)
        assert found.dtype == np.float32 and np.array_equal(found, expected.reshape(2, 3))


@pytest.mark.parametrize("block", [1, 24, 25, 10**6])
def test_pieces_are_whole_rows_in_their_order(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.core.weights.BLOCK", block)
    wide = {"dtype": "F32", "shape": [7, 3], "data_offsets": [34, 118]}
    with WeightsFile(write(tmp_path / "file", {"a": A, "b": B, "wide": wide}, length=118)) as opened:
        for name, row in (("wide", 12), ("a", 12), ("b", 10)):
            pieces = [(first, bytes(piece)) for first, piece in opened.pieces(name)]
            assert b"".join(piece for _, piece in pieces) == bytes(opened.read(name))
            sizes = [len(piece) for _, piece in pieces]
            assert [first * row for first, _ in pieces] == [sum(sizes[:number]) for number in range(len(sizes))]
            assert all(size % row == 0 and size <= max(block, row) for size in sizes)


def test_sizes_of_nothing(tmp_path: Path) -> None:
    empty = {"dtype": "F32", "shape": [0, 2**40], "data_offsets": [0, 0]}
    with WeightsFile(write(tmp_path / "file", {"x": empty, "y": empty}, length=0)) as opened:
        assert len(opened.read("x")) == 0 and not any(len(piece) for _, piece in opened.pieces("x"))
    with WeightsFile(write(tmp_path / "file", {}, length=0)) as opened:
        assert not opened.tensors


BROKEN = {
    "header of 2**63": ({"a": A, "b": B}, {"size": 2**63}),
    "header longer than the file": ({"a": A, "b": B}, {"size": 1000}),
    "header cut short": ({"a": A, "b": B}, {"size": 20}),
    "file cut short": ({"a": A, "b": B}, {"length": 33}),
    "no data": ({"a": A, "b": B}, {"length": 0}),
    "bytes left over": ({"a": A, "b": B}, {"length": 35}),
    "not JSON": (b"{]", {}),
    "not UTF-8": (b'{"\xff": 1}', {}),
    "deep JSON": (b"[" * 100_000, {}),
    "deep table": (b'{"a":' * 100_000, {}),
    "huge number": (b'{"a": ' + b"9" * 5000 + b"}", {}),
    "a name twice": (b'{"b": %s, "a": %s, "a": %s}' % tuple(json.dumps(each).encode() for each in (B, A, A)), {}),
    "list": ([A, B], {}),
    "no table of a tensor": ({"a": 5, "b": B}, {}),
    "no dtype": ({"a": {"shape": [2, 3], "data_offsets": [0, 24]}, "b": B}, {}),
    "no shape": ({"a": {"dtype": "F32", "data_offsets": [0, 24]}, "b": B}, {}),
    "no offsets": ({"a": {"dtype": "F32", "shape": [2, 3]}, "b": B}, {}),
    "one offset": ({"a": {**A, "data_offsets": [24]}, "b": B}, {}),
    "three offsets": ({"a": {**A, "data_offsets": [0, 24, 24]}, "b": B}, {}),
    "offsets backwards": ({"a": {**A, "data_offsets": [24, 0]}, "b": B}, {}),
    "negative offset": ({"a": {**A, "data_offsets": [-24, 0]}, "b": B}, {}),
    "offsets beyond": ({"a": {**A, "data_offsets": [2**63, 2**63 + 24]}, "b": B}, {}),
    "offset of words": ({"a": {**A, "data_offsets": ["0", "24"]}, "b": B}, {}),
    "offset of halves": ({"a": {**A, "data_offsets": [0.0, 24.0]}, "b": B}, {}),
    "offset of truth": ({"a": {**A, "data_offsets": [False, 24]}, "b": B}, {}),
    "shape of words": ({"a": {**A, "shape": "23"}, "b": B}, {}),
    "shape of nothing": ({"a": {**A, "shape": None}, "b": B}, {}),
    "shape that lies": ({"a": {**A, "shape": [3, 3]}, "b": B}, {}),
    "shape of 2**63": ({"a": {**A, "shape": [2**63, 2**63]}, "b": B}, {}),
    "shape that wraps around": ({"a": {**A, "shape": [2**62 + 3, 2, 2]}, "b": B}, {}),
    "negative shape": ({"a": {**A, "shape": [-2, -3]}, "b": B}, {}),
    "overlap": ({"a": A, "b": {**B, "data_offsets": [20, 30]}}, {}),
    "the same bytes twice": ({"a": A, "c": A, "b": B}, {}),
    "gap": ({"a": A, "b": {**B, "data_offsets": [26, 36]}}, {"length": 36}),
    "gap before all": ({"b": B}, {}),
    "unknown dtype": ({"a": {**A, "dtype": "I32"}, "b": B}, {}),
    "dtype of nothing": ({"a": {**A, "dtype": None}, "b": B}, {}),
    "dtype of lists": ({"a": {**A, "dtype": ["F32"]}, "b": B}, {}),
    "dtype of tables": ({"a": {**A, "dtype": {}}, "b": B}, {}),
}


@pytest.mark.parametrize(("header", "how"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused(tmp_path: Path, header: object, how: dict) -> None:
    file = write(tmp_path / "broken", header, **how)
    with pytest.raises(UserError, match=r"broken") as raised, little_time_and_memory():
        WeightsFile(file)
    assert str(file) in str(raised.value) and len(str(raised.value)) < len(str(file)) + 200


@pytest.mark.parametrize("size", range(8))
def test_a_file_without_a_size_is_refused(tmp_path: Path, size: int) -> None:
    (tmp_path / "broken").write_bytes(b"\x00" * size)
    with pytest.raises(UserError, match="broken"):
        WeightsFile(tmp_path / "broken")


def test_the_name_of_a_tensor_may_be_long(tmp_path: Path) -> None:
    file = write(tmp_path / "file", {"x" * 10**6: {**A, "shape": [7]}, "b": B})
    with pytest.raises(UserError) as raised:
        WeightsFile(file)
    assert len(str(raised.value)) < len(str(file)) + 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("model"), "encoder_decoder", family_settings("encoder_decoder"))


def contents(folder: Path) -> tuple[dict, bytes]:
    whole = (folder / "model.safetensors").read_bytes()
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])
    del header["__metadata__"]  # the checksum: what is found here is found behind it
    return header, whole[8 + size :]


def put(folder: Path, header: object, data: bytes) -> None:
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)


def copied(folder: Path, to: Path) -> Path:
    (to / "config.json").write_bytes((folder / "config.json").read_bytes())
    return to


def check_refused(folder: Path, message: str) -> None:
    with pytest.raises(UserError, match=message) as raised, little_time_and_memory():
        core_model(folder)
    assert "model.safetensors" in str(raised.value) and len(str(raised.value)) < 500


def test_a_missing_tensor_is_named(folder: Path, tmp_path: Path) -> None:
    header, data = contents(folder)
    # The last one, so that there is no gap.
    last = max((name for name in header if name != "__metadata__"), key=lambda name: header[name]["data_offsets"][1])
    begin, _ = header.pop(last)["data_offsets"]
    put(copied(folder, tmp_path), header, data[:begin])
    check_refused(tmp_path, "is missing")


@pytest.mark.parametrize("name", ["strange", "encoder.2.attention.output_projection.weight", "x" * 500, "", "\n", "é"])
def test_an_unknown_tensor_is_named(folder: Path, tmp_path: Path, name: str) -> None:
    header, data = contents(folder)
    header[name] = {"dtype": "F32", "shape": [1], "data_offsets": [len(data), len(data) + 4]}
    put(copied(folder, tmp_path), header, data + b"\x00" * 4)
    check_refused(tmp_path, f"{name[:80]} is not part of the model")


@pytest.mark.parametrize(
    "name", ["encoder.positions.table", "source_embedding.positions.table", "decoder.positions.biases"]
)
def test_positions_that_the_scheme_does_not_have_are_refused(folder: Path, tmp_path: Path, name: str) -> None:
    header, data = contents(folder)
    header[name] = {"dtype": "F32", "shape": [1, 1], "data_offsets": [len(data), len(data) + 4]}
    put(copied(folder, tmp_path), header, data + b"\x00" * 4)
    check_refused(tmp_path, "is not part of the model")


def test_two_names_of_one_tensor_are_refused(folder: Path, tmp_path: Path) -> None:
    header, data = contents(folder)
    first = header["source_embedding.table.weight"]
    begin, end = first["data_offsets"]
    # The engine's own name, beside that of the file.
    header["encoder.embedding"] = {**first, "data_offsets": [len(data), len(data) + end - begin]}
    put(copied(folder, tmp_path), header, data + data[begin:end])
    check_refused(tmp_path, "(encoder.embedding|source_embedding.table.weight) is not part of the model")


def test_a_tensor_with_another_shape_is_named(folder: Path, tmp_path: Path) -> None:
    header, data = contents(folder)
    for name in header.keys() - {"__metadata__"}:
        changed = json.loads(json.dumps(header))
        changed[name]["shape"] = [*header[name]["shape"], 1]
        put(copied(folder, tmp_path), changed, data)
        check_refused(tmp_path, f"{name} has another shape than the settings say")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_a_number_is_found_wherever_it_is(folder: Path, tmp_path: Path, bad: float) -> None:
    header, data = contents(folder)
    for name in header.keys() - {"__metadata__"}:
        begin, end = header[name]["data_offsets"]
        for place in {begin, end - 4}:
            changed = bytearray(data)
            changed[place : place + 4] = np.float32(bad).tobytes()
            put(copied(folder, tmp_path), header, bytes(changed))
            check_refused(tmp_path, "holds a number that is infinite or NaN")


@pytest.mark.parametrize("name", ["blocks.0.feed_forward_residual.norm.weight", "positions.table"])
def test_a_double_that_no_float_holds_is_found(tmp_path: Path, name: str) -> None:
    folder = save(tmp_path, "encoder_only", family_settings("encoder_only"))
    header, data = contents(folder)
    order = sorted(header.keys() - {"__metadata__"}, key=lambda each: header[each]["data_offsets"][0])
    parts = []
    for each in order:
        begin, end = header[each]["data_offsets"]
        numbers = np.frombuffer(data[begin:end], np.float32).astype(np.float64)
        numbers[0] = 1e300 if each == name else numbers[0]
        first = sum(map(len, parts))
        parts.append(numbers.tobytes())
        header[each] = {**header[each], "dtype": "F64", "data_offsets": [first, first + len(parts[-1])]}
    put(folder, header, b"".join(parts))
    check_refused(folder, "infinite or NaN")


def check_loads_or_refused(folder: Path) -> None:
    refusal = "model.safetensors"
    try:
        with little_time_and_memory():
            core_model(folder)
    except UserError as error:  # every other kind fails the test
        refusal = str(error)
    assert "model.safetensors" in refusal


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.data())
def test_any_header_loads_or_is_refused(folder: Path, tmp_path: Path, draw: st.DataObject) -> None:
    header, data = contents(folder)
    put(copied(folder, tmp_path), mutated(header, draw), data)
    check_loads_or_refused(tmp_path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 2**20), value=st.integers(0, 255), length=st.integers(0, 2**20), cut=st.booleans())
def test_any_byte_may_be_wrong(folder: Path, tmp_path: Path, place: int, value: int, length: int, cut: bool) -> None:
    whole = bytearray((folder / "model.safetensors").read_bytes())
    whole[place % min(len(whole), 4000)] = value
    (copied(folder, tmp_path) / "model.safetensors").write_bytes(whole[: length % len(whole)] if cut else whole)
    check_loads_or_refused(tmp_path)
