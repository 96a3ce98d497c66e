from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.errors import UserError
from heedful.tasks.translation import shortlist as job
from heedful.tasks.translation.corpus import ParallelCorpus
from heedful.tasks.translation.shortlist import learn_shortlist
from heedful.text.shortlist import FILE, Shortlist, load_shortlist
from heedful.text.special_tokens import SpecialTokens
from heedful.text.tokenizer import Tokenizer

PAIRS = [("red dog", "chien rouge"), ("blue dog", "chien bleu"), ("", "x"), ("blue sea", "mer bleue"), ("sea", "mer")]


def learned(folder: Path, monkeypatch: pytest.MonkeyPatch, frequent: int = 7) -> tuple[Shortlist, Tokenizer]:
    monkeypatch.setattr(job, "FREQUENT", frequent)
    for name, lines in zip(("en", "fr"), zip(*PAIRS, strict=True), strict=True):
        (folder / f"text.{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    tokenizer = Tokenizer.train([f"{a} {b}" for a, b in PAIRS], 300)
    corpus = ParallelCorpus.from_files([str(folder / "text.en")], [str(folder / "text.fr")])
    found, share = learn_shortlist(corpus, tokenizer, tokenizer.vocabulary_size)
    assert share == 1.0
    return found, tokenizer


def test_counts_are_those_of_a_plain_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, tokenizer = learned(tmp_path, monkeypatch)
    pairs = [(tokenizer.encode(a), tokenizer.encode(b)) for a, b in PAIRS if a]
    counts = Counter(token for _, target in pairs for token in target)
    frequent = sorted(counts, key=lambda token: (-counts[token], token))[:6]
    assert found.frequent_F.tolist() == [tokenizer.special_tokens.end, *frequent]
    sources, targets, both = Counter[int](), Counter[int](), Counter[tuple[int, int]]()
    for source, target in pairs:
        sources.update(set(source))
        targets.update(set(target))
        both.update((s, t) for s in set(source) for t in set(target) if t not in frequent)
    strengths = {(s, t): n * n / (sources[s] * targets[t]) for (s, t), n in both.items()}
    for token in range(tokenizer.vocabulary_size):
        wanted = sorted(((-x, t) for (s, t), x in strengths.items() if s == token))[: job.PER_TOKEN]
        there = found.strengths_VE[token] > 0
        assert found.likely_VE[token][there].tolist() == [t for _, t in wanted]
        assert found.strengths_VE[token][there].tolist() == pytest.approx([-x for x, _ in wanted])


def test_own_tokens_are_distinct_and_the_strongest_come_first() -> None:
    likely = np.array([[5, 6, 7], [6, 8, 0]])
    strengths = np.array([[0.1, 0.9, 0.3], [0.5, 0.2, 0.0]], np.float32)
    found = Shortlist(np.array([2]), likely, strengths).own_tokens(np.array([0, 1, 1]))
    assert found.tolist() == [6, 7, 8, 5]


def test_it_is_saved_and_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, tokenizer = learned(tmp_path, monkeypatch)
    found.save(tmp_path)
    size, special = tokenizer.vocabulary_size, tokenizer.special_tokens
    loaded = load_shortlist(tmp_path, size, special)
    for name in ("frequent_F", "likely_VE", "strengths_VE"):
        assert np.array_equal(getattr(found, name), getattr(loaded, name))
    with pytest.raises(UserError, match="another vocabulary"):
        load_shortlist(tmp_path, size + 1, special)
    (tmp_path / FILE).write_bytes(b"nonsense")
    with pytest.raises(UserError, match="is broken"):
        load_shortlist(tmp_path, size, special)


def test_text_on_one_side_only_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.tsv").write_text("\ta\nb\t\n", encoding="utf-8")
    corpus = ParallelCorpus.from_tsv([str(tmp_path / "text.tsv")])
    with pytest.raises(UserError, match="no pairs of lines"):
        learn_shortlist(corpus, Tokenizer.train(["a b"], 270), 270)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frequent_F": [3, 2]}, "its first token is not the end"),
        ({"frequent_F": [2, 5, 5]}, "a frequent token is special, or comes twice"),
        ({"frequent_F": [2, 5, 0]}, "a frequent token is special, or comes twice"),
        ({"likely_VE": [[1]] * 7}, "a source token calls for a token that is special, or frequent"),
        ({"likely_VE": [[3]] * 7}, "a source token calls for a token that is special, or frequent"),
        ({"likely_VE": [[7]] * 7}, "belongs to another vocabulary"),
        ({"frequent_F": []}, "its arrays have other types or axes"),
        ({"likely_VE": [[-1]] * 7}, "its arrays do not go together"),
    ],
)
def test_a_shortlist_that_names_wrong_tokens_is_refused(tmp_path: Path, changes, message) -> None:
    arrays = {"frequent_F": [2, 3], "likely_VE": [[5]] * 7, **changes}
    found = Shortlist(*(np.array(each, np.int64) for each in arrays.values()), np.ones((7, 1), np.float32))
    found.save(tmp_path)
    with pytest.raises(UserError, match=message):
        load_shortlist(tmp_path, 7, SpecialTokens())
    # A strength of 0 stands for no token.
    replace(found, frequent_F=np.array([2, 3]), likely_VE=np.full((7, 1), 3), strengths_VE=0 * found.strengths_VE).save(
        tmp_path
    )
    assert load_shortlist(tmp_path, 7, SpecialTokens()).own_tokens(np.array([5])).tolist() == []


def test_a_shortlist_of_another_model_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("one", encoding="utf-8")
    Shortlist(np.array([2, 3]), np.full((7, 1), 5), np.ones((7, 1), np.float32)).save(tmp_path)
    assert load_shortlist(tmp_path, 7, SpecialTokens()).own_tokens(np.array([6])).tolist() == [5]
    (tmp_path / "tokenizer.json").write_text("two", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_shortlist(tmp_path, 7, SpecialTokens())
    assert str(caught.value) == f"{tmp_path / FILE} was made for another model: make it again with heedful shortlist"
    (tmp_path / "tokenizer.json").write_text("one", encoding="utf-8")
    content = bytearray((tmp_path / FILE).read_bytes())
    content[-1] ^= 1
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(UserError, match="is broken: it does not have the checksum"):
        load_shortlist(tmp_path, 7, SpecialTokens())
