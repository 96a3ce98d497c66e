import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import UserError
from heedful.prepared import folder as folder_module
from heedful.tasks.translation import data as prepared_module
from heedful.tasks.translation.corpus import ParallelCorpus
from heedful.tasks.translation.data import PreparedTranslation, PrepareOptions, prepare_translation
from heedful.tasks.translation.summary import DataSummary
from heedful.text.tokenizer import Tokenizer

Pairs = list[tuple[str, str]]


def corpus_of(folder: Path, pairs: Pairs, name: str = "train") -> ParallelCorpus:
    files = []
    for language, texts in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        path = folder / f"{name}.{language}"
        path.write_bytes("".join(f"{text}\n" for text in texts).encode())
        files.append(str(path))
    return ParallelCorpus.from_files(files[:1], files[1:])


def contents(prepared: PreparedTranslation, part: str) -> Pairs:
    pairs = getattr(prepared, part)
    return [(pairs.source_text(i), pairs.target_text(i)) for i in range(len(pairs))]


def report_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "data-report.jsonl").read_text(encoding="utf-8").splitlines()]


def test_clean_pairs_come_back_in_order_and_a_part_is_held_out(tmp_path: Path, sentence_pairs: Pairs) -> None:
    prepared = prepare_translation(corpus_of(tmp_path, sentence_pairs), None, tmp_path / "run", PrepareOptions())
    train, valid = contents(prepared, "train"), contents(prepared, "valid")
    assert len(valid) == 6
    assert train == [pair for pair in sentence_pairs if pair not in valid]
    assert valid == [pair for pair in sentence_pairs if pair in valid]
    assert prepared.summary.train_files.pairs_read == prepared.summary.train_files.pairs_kept == 307
    assert (prepared.summary.train_pairs, prepared.summary.valid_pairs) == (301, 6)
    assert prepared.summary.train_tokens == prepared.train.source_lengths.sum() + prepared.train.target_lengths.sum()
    assert prepared.summary.vocabulary_size == prepared.tokenizer.vocabulary_size
    assert [entry.keys() for entry in report_of(tmp_path / "run")] == [{"summary"}]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["data-report.jsonl", "prepared"]
    assert sorted(path.name for path in (tmp_path / "run" / "prepared").iterdir()) == [
        "checksums.json",
        "meta.json",
        "tokenizer.json",
        "train",
        "valid",
    ]


def test_every_rule_is_applied_counted_and_listed(tmp_path: Path, sentence_pairs: Pairs) -> None:
    good = sentence_pairs[:101]
    lines = [(source.encode(), target.encode()) for source, target in good]
    lines[3:3] = [
        (b"bad \xff", b"schlecht"),  # line 4
        (b"con\x00trol", b"Steuer"),  # line 5
        (b"blank", b" "),  # line 6
        (b"x " * 257, b"kurz"),  # line 7
        (b"one", b"sehr lang! " * 11),  # line 8
        (b" " + lines[0][0], lines[0][1] + b"\t"),  # line 9: a duplicate once it is clean
    ]
    for place, name in enumerate(("train.en", "train.de")):
        (tmp_path / name).write_bytes(b"\n".join(pair[place] for pair in lines))
    corpus = ParallelCorpus.from_files([str(tmp_path / "train.en")], [str(tmp_path / "train.de")])
    prepared = prepare_translation(corpus, None, tmp_path / "run", PrepareOptions())
    *hits, last = report_of(tmp_path / "run")
    assert {(hit["rule"], hit["line"], hit["side"], hit["action"]) for hit in hits} == {
        ("invalid UTF-8", 4, "source", "left out"),
        ("control characters", 5, "source", "changed"),
        ("blank", 6, "target", "left out"),
        ("over-long", 7, "source", "left out"),
        ("length ratio", 8, "both", "left out"),
        ("duplicate", 9, "both", "left out"),
    }
    assert len(hits) == 6
    assert all(hit["files"] == [str(tmp_path / "train.en"), str(tmp_path / "train.de")] for hit in hits)
    counts = prepared.summary.train_files
    assert (counts.pairs_read, counts.pairs_kept) == (107, 102)
    assert counts.hits == Counter(hit["rule"] for hit in hits)
    assert DataSummary.from_dict(last["summary"]) == prepared.summary
    everything = contents(prepared, "train") + contents(prepared, "valid")
    assert sorted(everything) == sorted([*good, ("con trol", "Steuer")])


def test_validation_files_keep_duplicates_and_uneven_pairs(tmp_path: Path, sentence_pairs: Pairs) -> None:
    valid_pairs = [
        sentence_pairs[0],
        sentence_pairs[0],
        ("one", "sehr lang! " * 11 + "x"),
        ("", "leer"),
        ("x " * 257, "y"),
    ]
    prepared = prepare_translation(
        corpus_of(tmp_path, sentence_pairs),
        corpus_of(tmp_path, valid_pairs, "valid"),
        tmp_path / "run",
        PrepareOptions(),
    )
    assert contents(prepared, "valid") == valid_pairs[:3]
    assert contents(prepared, "train") == sentence_pairs
    assert prepared.summary.valid_files is not None
    assert prepared.summary.valid_files.hits == {"blank": 1, "over-long": 1}
    *hits, warning, _ = report_of(tmp_path / "run")
    assert [(hit["corpus"], hit["rule"], hit["line"]) for hit in hits] == [
        ("valid", "blank", 4),
        ("valid", "over-long", 5),
    ]
    assert warning["warning"].startswith("2 of 3 held-out pairs are also in the training files: ")


def test_held_out_sources_are_not_in_training_nor_in_the_tokenizer(tmp_path: Path, sentence_pairs: Pairs) -> None:
    # Each source comes twice with one translation and once with another.
    pairs = sentence_pairs * 2 + [(source, target + " anders") for source, target in sentence_pairs]
    prepared = prepare_translation(corpus_of(tmp_path, pairs), None, tmp_path / "run", PrepareOptions())
    train, valid = contents(prepared, "train"), contents(prepared, "valid")
    assert len(train) + len(valid) == 2 * 307
    assert len(valid) == 12
    assert not {source for source, _ in train} & {source for source, _ in valid}
    size = prepared.tokenizer.vocabulary_size
    alone = Tokenizer.train((text for pair in train for text in pair), size)
    assert alone.to_json() == prepared.tokenizer.to_json()


def test_the_vocabulary_is_chosen_from_the_training_part(
    tmp_path: Path, sentence_pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(prepared_module, "choose_vocabulary_size", lambda number: asked.append(number) or 331)
    corpus = corpus_of(tmp_path, sentence_pairs + sentence_pairs[:7])
    prepared = prepare_translation(corpus, None, tmp_path / "run", PrepareOptions())
    assert asked == [sum(len(source) + len(target) for source, target in contents(prepared, "train"))]
    assert prepared.tokenizer.vocabulary_size == 331
    assert (
        prepare_translation(
            corpus, None, tmp_path / "run", PrepareOptions(vocabulary_size=313)
        ).tokenizer.vocabulary_size
        == 313
    )


def test_prepared_data_is_reused_until_content_or_options_change(
    tmp_path: Path, sentence_pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = corpus_of(tmp_path, sentence_pairs)
    passes: list[int] = []
    survey = prepared_module.survey
    monkeypatch.setattr(prepared_module, "survey", lambda *given: passes.append(1) or survey(*given))

    def prepare(corpus: ParallelCorpus, options: PrepareOptions, tokenizer: Tokenizer | None = None) -> int:
        passes.clear()
        prepared = prepare_translation(corpus, None, tmp_path / "run", options, tokenizer=tokenizer)
        assert len(prepared.train) + len(prepared.valid) >= 300
        return len(passes)

    default = PrepareOptions()
    assert prepare(corpus, default) == 1
    assert prepare(corpus, default) == 0
    (tmp_path / "elsewhere").mkdir()
    assert prepare(corpus_of(tmp_path / "elsewhere", sentence_pairs), default) == 0
    assert prepare(corpus, PrepareOptions(vocabulary_size=401)) == 1
    assert prepare(corpus, PrepareOptions(vocabulary_size=401, max_length=97)) == 1
    assert prepare(corpus, default) == 1
    (tmp_path / "train.de").write_bytes((tmp_path / "train.de").read_bytes().replace(b"Hund", b"Fund", 1))
    assert prepare(corpus, default) == 1
    assert prepare(corpus, default, Tokenizer.train(["another"], 300)) == 1
    (tmp_path / "run" / "data-report.jsonl").unlink()
    assert prepare(corpus, default, Tokenizer.train(["another"], 300)) == 1
    assert prepare(corpus, default, Tokenizer.train(["another"], 300)) == 0


def test_a_run_that_broke_off_leaves_nothing_that_is_taken_for_whole(
    tmp_path: Path, sentence_pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, run = corpus_of(tmp_path, sentence_pairs), tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "seal_folder", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            prepare_translation(corpus, None, run, PrepareOptions())
    assert sorted(path.name for path in run.iterdir()) == ["data-report.jsonl"]
    # A kill leaves the partial folder behind, with whatever is in it.
    (run / "prepared.partial" / "train").mkdir(parents=True)
    (run / "prepared.partial" / "train" / "source-tokens.bin").write_bytes(b"half")
    prepared = prepare_translation(corpus, None, run, PrepareOptions())
    assert len(prepared.train) == 301
    assert not (run / "prepared.partial").exists()
    again = prepare_translation(corpus, None, run, PrepareOptions())
    assert contents(again, "train") == contents(prepared, "train")


@pytest.mark.parametrize("meta", ["{", '{"format": 0}', "{}"])
def test_prepared_data_of_another_format_is_made_anew(tmp_path: Path, sentence_pairs: Pairs, meta: str) -> None:
    corpus, run = corpus_of(tmp_path, sentence_pairs), tmp_path / "run"
    first = prepare_translation(corpus, None, run, PrepareOptions())
    (run / "prepared" / "meta.json").write_text(meta)
    again = prepare_translation(corpus, None, run, PrepareOptions())
    assert again.summary == first.summary
    assert again.folder.remark is not None and "it was prepared again" in again.folder.remark


def test_a_given_tokenizer_is_used_as_it_is(tmp_path: Path, sentence_pairs: Pairs, tokenizer: Tokenizer) -> None:
    corpus = corpus_of(tmp_path, [("Ω is new", "Ω ist neu"), *sentence_pairs])
    prepared = prepare_translation(corpus, None, tmp_path / "run", PrepareOptions(), tokenizer=tokenizer)
    assert prepared.tokenizer.to_json() == tokenizer.to_json()
    assert prepared.train.source(0).tolist() == tokenizer.encode("Ω is new")


def test_a_packed_tsv_from_standard_input_is_like_the_two_files(
    tmp_path: Path, sentence_pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    from_files = prepare_translation(corpus_of(tmp_path, sentence_pairs), None, tmp_path / "a", PrepareOptions())
    tsv = "".join(f"{source}\t{target}\n" for source, target in sentence_pairs) + "no target\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(tsv.encode()))))
    from_input = prepare_translation(ParallelCorpus.from_tsv(["-"]), None, tmp_path / "b", PrepareOptions())
    assert contents(from_input, "train") == contents(from_files, "train")
    assert contents(from_input, "valid") == contents(from_files, "valid")
    assert report_of(tmp_path / "b")[0] == {
        "corpus": "train",
        "rule": "missing column",
        "action": "left out",
        "side": "both",
        "files": ["standard input"],
        "line": 308,
    }
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["data-report.jsonl", "prepared"]


def test_standard_input_cannot_be_both_corpora(tmp_path: Path) -> None:
    corpus = ParallelCorpus.from_tsv(["-"])
    with pytest.raises(UserError, match="not both"):
        prepare_translation(corpus, corpus, tmp_path / "run", PrepareOptions())


def test_when_nothing_is_left_the_error_has_the_counts(tmp_path: Path, sentence_pairs: Pairs) -> None:
    corpus = corpus_of(tmp_path, [("", "leer")] * 5 + [("voll", " ")] * 2)
    with pytest.raises(UserError, match=r"no pair is left for training: 7 pairs read, 0 kept, blank 7; .*data-report"):
        prepare_translation(corpus, None, tmp_path / "run", PrepareOptions())
    assert len(report_of(tmp_path / "run")) == 7
    with pytest.raises(UserError, match=r"for training: 307 pairs read, 0 kept, over-long 307"):
        prepare_translation(corpus_of(tmp_path, sentence_pairs), None, tmp_path / "run", PrepareOptions(max_length=1))
    with pytest.raises(UserError, match=r"for validation: 1 pairs read, 0 kept, blank 1"):
        prepare_translation(
            corpus_of(tmp_path, sentence_pairs),
            corpus_of(tmp_path, [("", "leer")], "valid"),
            tmp_path / "run",
            PrepareOptions(),
        )
    (tmp_path / "none").touch()
    empty = ParallelCorpus.from_tsv([str(tmp_path / "none")])
    with pytest.raises(UserError, match="the files are empty"):
        prepare_translation(empty, None, tmp_path / "run", PrepareOptions())


@pytest.mark.parametrize("more", [b"one more line\n", b""])
def test_files_that_change_meanwhile_are_an_error(
    tmp_path: Path, sentence_pairs: Pairs, monkeypatch: pytest.MonkeyPatch, more: bytes
) -> None:
    corpus = corpus_of(tmp_path, sentence_pairs)
    survey = prepared_module.survey

    def change_after(*given: Any) -> Any:
        sample = survey(*given)
        for name in ("train.en", "train.de"):
            content = (tmp_path / name).read_bytes()
            (tmp_path / name).write_bytes(content + more if more else content[: content.index(b"\n") + 1])
        return sample

    monkeypatch.setattr(prepared_module, "survey", change_after)
    with pytest.raises(UserError, match="changed while it was being read"):
        prepare_translation(corpus, None, tmp_path / "run", PrepareOptions())
    assert not (tmp_path / "run" / "prepared").exists()


def test_progress_tells_of_each_stage(tmp_path: Path, sentence_pairs: Pairs) -> None:
    calls: list[tuple[str, int, int | None]] = []
    prepare_translation(
        corpus_of(tmp_path, sentence_pairs),
        corpus_of(tmp_path, sentence_pairs[:3], "valid"),
        tmp_path / "run",
        PrepareOptions(),
        progress=lambda *call: calls.append(call),
    )
    stages = list(dict.fromkeys(stage for stage, _, _ in calls))
    assert stages == ["comparing files", "reading", "learning subwords", "encoding", "encoding validation"]
    assert ("reading", 307, 307) in calls
    assert ("encoding", 307, 307) in calls


@pytest.mark.parametrize(
    ("options", "message"), [({"vocabulary_size": 258}, "minimum is 259"), ({"max_length": 0}, "minimum is 1")]
)
def test_options_that_cannot_work_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        PrepareOptions(**options)
