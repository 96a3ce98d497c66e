import io
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.tasks.translation.corpus import ParallelCorpus
from heedful.text import text_files
from heedful.text.cleaning import Rule
from heedful.text.text_files import MAX_LINE_BYTES


def write(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return str(path)


def located_pairs(corpus: ParallelCorpus) -> list[tuple[str, int, str, str]]:
    """Last file name, line number, source and target of each pair."""
    return [
        (Path(block.files[-1]).name, block.first_line + place, source.decode(), target.decode())
        for block in corpus.blocks()
        for place, (source, target) in enumerate(zip(block.sources, block.targets, strict=True))
    ]


@pytest.mark.parametrize("block_bytes", [3, 11, 1 << 19])
def test_aligned_files_give_pairs_with_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", block_bytes)
    write(tmp_path / "1.en", "one", "two", "three is longer")
    write(tmp_path / "1.de", "eins", "zwei oder mehr", "drei")
    write(tmp_path / "2.en", "four")
    write(tmp_path / "2.de", "vier")
    corpus = ParallelCorpus.from_files([str(tmp_path / "*.en")], [str(tmp_path / "*.de")])
    assert located_pairs(corpus) == [
        ("1.de", 1, "one", "eins"),
        ("1.de", 2, "two", "zwei oder mehr"),
        ("1.de", 3, "three is longer", "drei"),
        ("2.de", 1, "four", "vier"),
    ]
    assert (corpus.source_language, corpus.target_language) == ("en", "de")


@pytest.mark.parametrize(("short", "long"), [("a.en", "a.de"), ("a.de", "a.en")])
@pytest.mark.parametrize("block_bytes", [5, 1 << 19])
def test_unequal_line_counts_name_both_files_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, short: str, long: str
) -> None:
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", block_bytes)
    write(tmp_path / short, *"abc")
    write(tmp_path / long, *"abcdefghijk")
    corpus = ParallelCorpus.from_files([str(tmp_path / "a.en")], [str(tmp_path / "a.de")])
    with pytest.raises(UserError) as raised:
        list(corpus.blocks())
    assert f"{tmp_path / short} has 3" in str(raised.value)
    assert f"{tmp_path / long} has 11" in str(raised.value)


def test_unequal_numbers_of_files_are_an_error(tmp_path: Path) -> None:
    files = [write(tmp_path / name, "x") for name in ("a.en", "b.en", "a.de")]
    with pytest.raises(UserError, match=r"2 source files .*a\.en.*b\.en.* 1 target files"):
        ParallelCorpus.from_files(files[:2], files[2:])


def test_tsv_takes_two_columns_and_marks_lines_with_fewer(tmp_path: Path) -> None:
    many = [f"{number}\tzwei" for number in range(300)]
    path = write(tmp_path / "train.en-de.tsv", "one\teins", "two", "three\tdrei\tmore\tcolumns", "", "\t", *many)
    corpus = ParallelCorpus.from_tsv([path])
    (block,) = corpus.blocks()
    assert block.files == (path,)
    assert block.missing == (1, 3)
    assert block.faults == {2: Rule.OTHER_COLUMNS}
    assert block.sources[:2] + block.sources[3:5] == [b"one", b"two", b"", b""]
    assert block.targets[:2] + block.targets[3:5] == [b"eins", b"", b"", b""]
    assert (corpus.source_language, corpus.target_language) == ("en", "de")


def test_a_tsv_line_that_was_cut_is_over_long_on_both_sides(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "s" * MAX_LINE_BYTES + "\tt")
    (block,) = ParallelCorpus.from_tsv([path]).blocks()
    assert len(block.sources[0]) == len(block.targets[0]) == MAX_LINE_BYTES + 1


def test_given_languages_win_and_disagreeing_names_say_nothing(tmp_path: Path) -> None:
    files = [write(tmp_path / name, "x") for name in ("a.en", "b.fr", "a.de", "b.de")]
    corpus = ParallelCorpus.from_files(files[:2], files[2:])
    assert (corpus.source_language, corpus.target_language) == (None, "de")
    corpus = ParallelCorpus.from_files(files[:1], files[2:3], source_language="en-GB", target_language="gsw")
    assert (corpus.source_language, corpus.target_language) == ("en-GB", "gsw")
    tsv = write(tmp_path / "a.en-de.tsv", "x\ty")
    assert ParallelCorpus.from_tsv([tsv], target_language="nl").source_language == "en"
    assert ParallelCorpus.from_tsv([tsv], target_language="nl").target_language == "nl"


def test_standard_input_must_be_a_tsv_and_come_once(tmp_path: Path) -> None:
    file = write(tmp_path / "a.en", "x")
    with pytest.raises(UserError, match="can only give a TSV"):
        ParallelCorpus.from_files(["-"], [file])
    with pytest.raises(UserError, match="only once"):
        ParallelCorpus.from_tsv(["-", "-"])
    assert ParallelCorpus.from_tsv(["-"]).reads_standard_input


def test_no_files_are_an_error() -> None:
    with pytest.raises(UserError, match="no files"):
        ParallelCorpus.from_files([], [])
    with pytest.raises(UserError, match="no files"):
        ParallelCorpus.from_tsv([])


def test_spooled_standard_input_can_be_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\teins\ntwo\tzwei\n")))
    plain = write(tmp_path / "b.tsv", "three\tdrei")
    corpus = ParallelCorpus.from_tsv(["-", plain]).spooled(tmp_path / "spool")
    expected = [
        ("standard input", 1, "one", "eins"),
        ("standard input", 2, "two", "zwei"),
        ("b.tsv", 1, "three", "drei"),
    ]
    assert located_pairs(corpus) == expected
    assert located_pairs(corpus) == expected
    assert corpus.files[1].path == Path(plain)


def test_a_corpus_of_plain_files_is_not_copied(tmp_path: Path) -> None:
    corpus = ParallelCorpus.from_tsv([write(tmp_path / "a.tsv", "x\ty")])
    assert corpus.spooled(tmp_path / "spool") == corpus
    assert not (tmp_path / "spool").exists()
