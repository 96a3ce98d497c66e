import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.decoding.options import DecodingOptions, SamplingOptions
from heedful.errors import UserError
from heedful.tasks.computing import Computing
from heedful.tasks.translation import line_input
from heedful.tasks.translation import lines as line_translation
from heedful.tasks.translation.line_input import chunks
from heedful.tasks.translation.lines import INVALID_UTF8, LineSettings, output_lines
from heedful.tasks.translation.pipeline import Translation
from heedful.tasks.translation.recent_answers import InputLine, LineAnswer, RecentAnswers


def reader(blocks: list[bytes]):
    waiting: Iterator[bytes] = iter([*blocks, b""])
    return lambda: next(waiting)


@given(st.lists(st.binary(min_size=1, max_size=7), max_size=11), st.integers(1, 5))
def test_lines_come_whole_and_in_order_however_the_bytes_are_cut(blocks: list[bytes], size: int) -> None:
    text = b"".join(blocks)
    expected = text.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    found = [chunk for chunk in chunks(reader(blocks), size) if chunk is not None]
    assert [line for chunk in found for line in chunk] == expected
    assert all(1 <= len(chunk) <= size for chunk in found)


def test_a_line_in_many_parts_takes_a_time_in_proportion() -> None:
    def seconds(count: int) -> float:
        begin = time.process_time()
        found = [line for chunk in chunks(reader([b"x" * 4096] * count), 7) for line in chunk or []]
        assert list(map(len, found)) == [4096 * count]
        return time.process_time() - begin

    # Six times as long a line; were it joined at every part, 36 times as much would be copied.
    assert min(seconds(6_000) for _ in range(3)) < 18 * min(seconds(1_000) for _ in range(3))


def test_a_line_too_long_for_the_memory_is_refused_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_input, "memory_limit", lambda: 3 * 2**20 * line_input.BYTES_PER_BYTE)
    block = b"x" * 2**16
    fits = [b"one\n", *[block] * 48, b"\n", *[block] * 48]
    assert [len(line) for chunk in chunks(reader(fits), 7) for line in chunk or []] == [3, 3 * 2**20, 3 * 2**20]
    with pytest.raises(UserError, match="line 2 has more than 3,145,728 bytes, too many for the memory"):
        list(chunks(reader([b"one\ntwo", *[block] * 49]), 7))
    endless = iter(lambda: block, None)
    with pytest.raises(UserError, match="line 1 has more than"):
        list(chunks(lambda: next(endless), 7))


def test_what_is_there_is_handed_out_while_more_is_waited_for() -> None:
    more = threading.Event()
    blocks = iter([b"one\ntwo\n"])

    def read() -> bytes:
        block = next(blocks, b"")
        if not block:
            more.wait(10)
        return block

    parts = chunks(read, 100)
    assert next(part for part in parts if part) == [b"one", b"two"]
    assert next(parts) is None  # about to wait: time to hand out results
    more.set()
    assert list(parts) == []


def test_long_lines_come_by_their_bytes_and_are_not_read_far_ahead() -> None:
    block, count, ended = (b"x" * 9_999 + b"\n") * 7, 0, False

    def read() -> bytes:
        nonlocal count
        count += 1
        return b"" if ended else block

    parts = (part for part in chunks(read, 2048) if part)
    given = [sum(map(len, next(parts))) for _ in range(3)]
    assert all(size < line_input.CHUNK_BYTES + 9_999 for size in given)
    seen = -1
    while seen < count:  # until nothing more is read
        seen = count
        time.sleep(0.1)
    assert count * len(block) - sum(given) < line_input.BYTES_AHEAD + 2 * len(block)
    ended = True
    assert sum(map(len, parts)) > 0


def test_texts_come_by_their_bytes_too() -> None:
    texts = ["é" * 300_000] * 5 + ["a"] * 7
    assert [len(group) for group in line_input.in_groups(texts, 5)] == [2, 2, 5, 3]


def test_full_chunks_are_those_that_ended_by_lines_or_bytes() -> None:
    def is_full(lines: list[str]) -> bool:
        chunk = RecentAnswers(0).look_up(1, [InputLine(text) for text in lines])
        return line_translation._is_full(chunk)

    assert is_full(["a"] * line_translation.CHUNK_LINES) and not is_full(["a"] * 7)
    assert is_full(["é" * 300_000] * 2) and is_full(["\U0001f600" * 2**18])


@pytest.mark.parametrize("engine", ["core", "torch"])
@pytest.mark.parametrize("sampling", [None, SamplingOptions()])
def test_lines_that_come_again_are_translated_once_and_remarked_on_each_time(
    monkeypatch, untrained_model: Path, sampling, engine
) -> None:
    options = DecodingOptions(nbest=2, beam=2 if sampling is None else 1, sampling=sampling)
    asked: list[bytes] = []

    def translate_chunk(settings: LineSettings, first: int, lines: list[InputLine]) -> list[LineAnswer]:
        asked.extend(line.text.encode() for line in lines)
        return [LineAnswer([line.text.upper(), ""], ["is a dog"] if line.text == "dog" else []) for line in lines]

    monkeypatch.setattr(line_translation, "translate_chunk", translate_chunk)
    lines = [b"dog", b"", *(word for n in range(300) for word in (b"cat", b"sea %d" % (n % 7), b"dog"))]
    written, counts, remarks = [], [], []
    line_translation.translate_lines(
        LineSettings(str(untrained_model), options, Computing(engine=engine)),
        1,
        reader([b"\xef\xbb\xbf" + b"\n".join(lines)]),
        lambda output, count: (written.extend(output), counts.append(count)),
        lambda number, text: remarks.append((number, text)),
    )
    assert written == [each for line in lines for each in (line.decode().upper(), "")]
    assert sum(counts) == len(lines)
    assert remarks == [(number, "is a dog") for number, line in enumerate(lines, 1) if line == b"dog"]
    assert asked == (lines if sampling else list(dict.fromkeys(lines)))


@pytest.mark.parametrize("engine", ["core", "torch"])
def test_texts_and_the_bytes_of_their_lines_are_the_same_to_the_workers(monkeypatch, untrained_model, engine) -> None:
    asked: list[list[InputLine]] = []

    def translate_chunk(settings: LineSettings, first: int, lines: list[InputLine]) -> list[LineAnswer]:
        asked.append(lines)
        return [LineAnswer([line.text], [] if line.is_valid else [INVALID_UTF8]) for line in lines]

    monkeypatch.setattr(line_translation, "translate_chunk", translate_chunk)
    texts = ["red", "", "\ufffd", *(f"Straße {number}" for number in range(300))]
    settings, written = LineSettings(str(untrained_model), DecodingOptions(), Computing(engine=engine)), []
    line_translation.translate_texts(settings, 1, texts, lambda lines, _: written.extend(lines), lambda *_: None)
    assert written == texts
    from_texts, asked[:] = [line for lines in asked for line in lines], []
    raw = "\r\n".join(texts).encode() + b"\nb\xff\n"
    remarks: list[tuple[int, str]] = []
    line_translation.translate_lines(
        settings, 1, reader([raw]), lambda *_: None, lambda number, text: remarks.append((number, text))
    )
    assert [line for lines in asked for line in lines] == [*from_texts, InputLine("b\ufffd", is_valid=False)]
    assert remarks == [(304, INVALID_UTF8)]


def test_columns_and_ranks() -> None:
    settings = LineSettings("model", DecodingOptions(beam=3, nbest=3), scores=True, alignment=True)
    one = Translation("a b", -1.25, ["a", " b"], [-0.5, -0.5, -0.25], [(0, 0), (2, 1)])
    other = Translation("c", -2.0, ["c"], [-1.0, -1.0], [(1, 0)])
    whole = Translation(one.text, one.score, one.tokens, one.token_scores, one.alignment, [one, other])
    assert output_lines(whole, settings) == ["a b\t-1.250000\t0-0 2-1", "c\t-2.000000\t1-0", ""]
    assert output_lines(Translation(""), settings) == ["", "", ""]
