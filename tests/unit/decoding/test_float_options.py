"""Any number there is, as an option: refused in words, or taken, and then the same by both engines."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import heedful
from heedful.decoding import DecodingOptions, SamplingOptions
from heedful.errors import UserError

# The whole range, more of what may be taken, and what floating point has at its edges.
NUMBERS = st.floats() | st.floats(0, 2) | st.floats(0, 1e-5) | st.integers(-3, 3)
EDGES = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 1e-320, 1e-45, 1e-38, 1e-6, 1e308, 1, 0, True, None]


def at_the_edges(test):
    for value in EDGES:
        test = example(value)(test)
    return test


@pytest.fixture(scope="module")
def translators(small_folders):
    return [heedful.load(small_folders["translation"], engine=engine) for engine in ("core", "torch")]


@pytest.fixture(scope="module")
def writers(small_folders):
    return [heedful.load(small_folders["language_model"], engine=engine) for engine in ("core", "torch")]


def refusal(ask) -> str | None:
    """What is said of options that are refused, or None."""
    try:
        ask()
    except UserError as error:
        return str(error)
    return None


def taken_or_refused(name: str, value: object, make, ask) -> None:
    said = refusal(make)
    assert said is None or said.startswith(f"{name} is {value!r}, but must be ")
    if said is None:
        first, second = ask(make())
        assert first == second


def translated(translators, options: DecodingOptions):
    found = [each.translate("red dog", options) for each in translators]
    assert all(math.isfinite(each.score) for each in found)
    return [each.text for each in found]


@pytest.mark.parametrize("name", ["temperature", "top_p"])
def test_of_samples(translators, name: str) -> None:
    @at_the_edges
    @given(NUMBERS)
    def check(value) -> None:
        def make() -> DecodingOptions:
            return DecodingOptions(max_length=3, sampling=SamplingOptions(**{"top_k": 7, name: value}))

        taken_or_refused(name, value, make, lambda options: translated(translators, options))

    check()


@pytest.mark.parametrize("name", ["length_penalty", "repetition_penalty"])
def test_of_searches(translators, name: str) -> None:
    @at_the_edges
    @given(NUMBERS)
    def check(value) -> None:
        def make() -> DecodingOptions:
            return DecodingOptions(beam=2, max_length=3, **{name: value})

        taken_or_refused(name, value, make, lambda options: translated(translators, options))

    check()


@pytest.mark.parametrize("name", ["temperature", "top_p", "repetition_penalty"])
def test_of_generated_texts(writers, name: str) -> None:
    @at_the_edges
    @given(NUMBERS)
    def check(value) -> None:
        def make() -> heedful.GenerationOptions:
            return heedful.GenerationOptions(max_tokens=3, **{name: value})

        taken_or_refused(name, value, make, lambda options: [each.generate("red", options) for each in writers])

    check()


@at_the_edges
@given(NUMBERS)
def test_of_scores(translators, value) -> None:
    def ask() -> list[float]:
        return [each.score("red", "dog", length_penalty=value).score for each in translators]

    said = refusal(ask)
    assert said is None or said.startswith(f"length_penalty is {value!r}, but must be ")
    if said is None:
        first, second = ask()
        assert first == pytest.approx(second, rel=1e-4)


@pytest.mark.parametrize("engine", ["core", "torch"])
@pytest.mark.parametrize(
    ("verb", "task", "options"),
    [
        ("translate", "translation", ["--sample"]),
        ("generate", "language_model", ["--max-tokens", "3"]),
    ],
)
def test_what_testers_typed(run, small_folders, verb: str, task: str, options: list[str], engine: str) -> None:
    arguments = ["red", *options, "--engine", engine, "--top-p", "1e-320"]
    error = run(verb, small_folders[task], *arguments, code=2).stderr.decode()
    assert error == "heedful: top_p is 1e-320, but must be a number from 0.000001 to 1, or none\n"
