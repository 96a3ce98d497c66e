"""Claims are measured once, kept, and measured again only when something changed; a stopped run goes on."""

import json
import shutil
from pathlib import Path

import pytest

from heedful.claims import results, runner, workbench
from heedful.claims.claim import PACKAGE, Claim
from heedful.claims.evidence import Chart, Evidence, number, series
from heedful.claims.learning import clock
from heedful.claims.results import Result, Row, committed_results, kept_result, run_document, save_result
from heedful.claims.runner import chosen_claims, run_claims
from heedful.claims.table import CLAIMS
from heedful.claims.workbench import Shelf, Workbench, fingerprint, sources_behind
from heedful.errors import UserError

EVIDENCE = Evidence(
    "three rows",
    "holds",
    "it does",
    (number("share", [0.5, 0.25]),),
    (Chart("A chart", "n", "ms", (series("one", [1, 2], [[3.0, 4.0]]),)),),
)
VARIANCE, HEADS = CLAIMS["variance"], CLAIMS["heads"]


class Listener:
    """Keeps what happens."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, str, bool]] = []

    def begins(self, claim: Claim, number: int, total: int) -> None:
        pass

    def working(self, text: str) -> None:
        pass

    def ends(self, row: Row, reused: bool) -> None:
        self.ended.append((row.claim.name, row.origin, reused))


class Measurement:
    """Stands for the module of a claim, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def measure(self, bench: object) -> Evidence:
        self.calls += 1
        return EVIDENCE


@pytest.fixture
def measurement(monkeypatch: pytest.MonkeyPatch) -> Measurement:
    stand_in = Measurement()
    monkeypatch.setattr(runner.importlib, "import_module", lambda name: stand_in)
    return stand_in


def test_a_result_is_reused_until_the_code_behind_it_changes(
    tmp_path: Path, measurement: Measurement, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    first = run_claims([VARIANCE], True, tmp_path, listener)
    again = run_claims([VARIANCE], True, tmp_path, listener)
    assert measurement.calls == 1 and first == again
    assert listener.ended == [("variance", "measured", False), ("variance", "measured", True)]
    run_claims([VARIANCE], False, tmp_path, listener)
    assert measurement.calls == 2  # a full result is another one
    monkeypatch.setattr(runner, "fingerprint", lambda claim, quick: "of other code")
    run_claims([VARIANCE], True, tmp_path, listener)
    assert measurement.calls == 3


def test_a_stopped_run_goes_on(tmp_path: Path, measurement: Measurement, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(bench: object) -> Evidence:
        raise KeyboardInterrupt

    claims = [VARIANCE, CLAIMS["masking"]]
    run_claims(claims[:1], True, tmp_path, Listener())
    with monkeypatch.context() as patch:
        patch.setattr(measurement, "measure", stop)
        with pytest.raises(KeyboardInterrupt):
            run_claims(claims, True, tmp_path, Listener())
    run_claims(claims, True, tmp_path, Listener())
    assert measurement.calls == 2  # the first was there, and the second was measured once


def test_the_time_of_a_stopped_run_counts(
    tmp_path: Path, measurement: Measurement, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(clock, "seconds_now", lambda: now[0])

    def measure(first: float, second: float, stops: bool) -> Row:
        def stand_in(bench: Workbench) -> Evidence:
            bench.tell("one")
            now[0] += first
            bench.tell("two")
            now[0] += second
            if stops:
                raise KeyboardInterrupt
            return EVIDENCE

        monkeypatch.setattr(measurement, "measure", stand_in)
        return run_claims([VARIANCE], True, tmp_path, Listener())[0]

    with pytest.raises(KeyboardInterrupt):
        measure(17.0, 5.0, True)
    # The part that was stopped is done again, and counts once.
    found = measure(0.0, 7.0, False).result
    assert found is not None and found.seconds == 24.0
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["variance-quick.json"]
    monkeypatch.setattr(runner, "fingerprint", lambda claim, quick: "of other code")
    again = measure(2.0, 1.0, False).result
    assert again is not None and again.seconds == 3.0


def test_a_damaged_result_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "variance.json"
    result = Result("x", True, 1.0, 2, "2", EVIDENCE)
    save_result(path, result)
    assert kept_result(path, "x") == result and kept_result(path, "y") is None
    path.write_text(path.read_text()[:-20])
    assert kept_result(path, "x") is None


def test_parts_of_a_measurement_are_made_once(tmp_path: Path) -> None:
    shelf, made = Shelf(tmp_path, "code"), []

    def make() -> list[float]:
        made.append(1)
        return [0.5]

    assert shelf.value("part", [1, "a"], make) == shelf.value("part", [1, "a"], make) == [0.5]
    shelf.value("part", [2, "a"], make)
    Shelf(tmp_path, "other code").value("part", [1, "a"], make)
    assert len(made) == 3


def test_fingerprints_differ_by_claim_and_kind() -> None:
    found = {fingerprint(claim, quick) for claim in (None, VARIANCE, HEADS) for quick in (True, False)}
    assert len(found) == 6


def test_only_a_change_of_what_runs_makes_results_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("claims", "layers", "models", "settings", "prepared", "tasks"):
        shutil.copytree(PACKAGE / place, tmp_path / place)
    monkeypatch.setattr(workbench, "PACKAGE", tmp_path)
    before = fingerprint(None, False), fingerprint(CLAIMS["batches"], False)

    def with_this(place: str, old: str, new: str) -> list[bool]:
        """Which of both fingerprints are others after a change, which is then undone."""
        file = tmp_path / place
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))
        after = fingerprint(None, False), fingerprint(CLAIMS["batches"], False)
        file.write_text(text)
        return [one != other for one, other in zip(before, after, strict=True)]

    for place in ("layers/blocks.py", "claims/learning/course.py", "prepared/batches.py"):
        assert with_this(place, '"""', '"""In other words: ') == [False, False]
        assert with_this(place, '\n    """', '\n    """In other words: ') == [False, False]
        assert with_this(place, "\n    def ", "\n\n    # Why.\n    def ") == [False, False]
    assert with_this("claims/learning/course.py", "clip_norm: float = 1.0", "clip_norm: float = 2.0") == [True, True]
    # What one measurement imports concerns only that one.
    assert with_this("prepared/batches.py", "seed", "sead") == [False, True]
    assert with_this("claims/measured/batches.py", "4000", "4001") == [False, True]


def test_a_quick_run_shows_the_committed_result_of_what_takes_long(
    tmp_path: Path, measurement: Measurement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "committed_results", dict)
    assert run_claims([HEADS], True, tmp_path, Listener())[0] == Row(HEADS, "absent", None)
    full = Result("x", False, 600.0, 2, "2", EVIDENCE)
    document = run_document([Row(HEADS, "measured", full), Row(VARIANCE, "committed", full)], False, "heedful claims")
    assert document["seconds"] == 600.0
    path = tmp_path / "claims.json"
    path.write_text(json.dumps(document))
    # What was itself taken from another run is not passed on.
    assert committed_results(path) == {"heads": full}
    monkeypatch.setattr(runner, "committed_results", lambda: committed_results(path))
    assert run_claims([HEADS], True, tmp_path, Listener())[0] == Row(HEADS, "committed", full)
    assert measurement.calls == 0
    run_claims([HEADS], False, tmp_path, Listener())
    assert measurement.calls == 1


def test_a_quick_run_does_not_begin_what_it_has_no_time_for(
    tmp_path: Path, measurement: Measurement, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Result("x", False, 60.0, 2, "2", EVIDENCE)
    monkeypatch.setattr(runner, "QUICK_SECONDS", 1)
    monkeypatch.setattr(runner, "committed_results", lambda: {"variance": full})
    found = run_claims([VARIANCE, CLAIMS["masking"]], True, tmp_path, Listener())
    # What has no committed result is measured all the same.
    assert [row.origin for row in found] == ["committed", "measured"] and measurement.calls == 1
    monkeypatch.setattr(runner, "QUICK_SECONDS", 600)
    assert run_claims([VARIANCE], True, tmp_path, Listener())[0].origin == "measured"
    monkeypatch.setattr(runner, "QUICK_SECONDS", 1)
    assert run_claims([VARIANCE], True, tmp_path, Listener())[0].origin == "measured"  # it was there
    assert run_claims([VARIANCE], False, tmp_path, Listener())[0].origin == "measured"
    assert measurement.calls == 3


def test_what_a_measurement_imports_is_behind_its_result() -> None:
    def behind(name: str) -> set[str]:
        return {path.relative_to(PACKAGE).as_posix() for path in sources_behind(PACKAGE / f"claims/measured/{name}.py")}

    assert behind("variance") == {"claims/measured/variance.py"}
    assert {"claims/measured/batches.py", "prepared/batches.py"} <= behind("batches")
    assert "tasks/language_modeling/permutation.py" in behind("objectives")
    assert "tasks/image_classification/demo_shapes.py" in behind("tokens")
    assert {"claims/measured/complexity.py", "claims/measured/long_range.py"} <= behind("local_attention")


def test_committed_results_of_another_format_are_refused(tmp_path: Path) -> None:
    assert committed_results(tmp_path / "none.json") == {}
    (tmp_path / "claims.json").write_text('{"format": 99, "claims": []}')
    with pytest.raises(UserError, match="has the format 99, and this version reads 1"):
        committed_results(tmp_path / "claims.json")


def test_the_committed_results_can_be_read() -> None:
    for name, result in committed_results(results.COMMITTED).items():
        assert name in CLAIMS and result.evidence.numbers and not result.quick


def test_names_are_checked_and_put_in_order() -> None:
    assert [claim.name for claim in chosen_claims(["masking", "variance"])] == ["variance", "masking"]
    assert len(chosen_claims([])) == len(CLAIMS) == 21
    with pytest.raises(UserError, match="there is no claim 'varience': did you mean 'variance'\\?"):
        chosen_claims(["varience"])
