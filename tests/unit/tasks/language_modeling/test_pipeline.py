"""The language model with random weights: what holds for any model."""

from pathlib import Path

import pytest
import torch

from heedful.config import from_dict
from heedful.errors import UserError
from heedful.model_folder import LoadedModel, ModelConfig, save_model_folder
from heedful.models.decoder_only import DecoderOnly
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.tasks.language_modeling.generation import GenerationOptions, LongPromptWarning
from heedful.tasks.language_modeling.pipeline import LanguageModel
from heedful.tasks.loading import load
from heedful.text.tokenizer import Tokenizer

TEXT = "the red dog is in the sea, and the sun is blue.\n"


@pytest.fixture(scope="module", params=["rotary", "sinusoidal"])
def model(request: pytest.FixtureRequest) -> LanguageModel:
    torch.manual_seed(1)
    tokenizer = Tokenizer.train([TEXT], 283, whole_texts=True)
    stack = {"num_layers": 2, "norm": "pre", "attention": {"num_heads": 3}}
    settings = {"vocabulary_size": tokenizer.vocabulary_size, "width": 12, "max_length": 19, "stack": stack}
    config = from_dict(DecoderOnlyConfig, {**settings, "positions": request.param})
    network = DecoderOnly(config).eval()
    return LanguageModel(LoadedModel(network, ModelConfig("decoder_only", "language_model", config), tokenizer))


def test_int8_is_for_the_core(model: LanguageModel, tmp_path: Path) -> None:
    save_model_folder(tmp_path, model.model, model.tokenizer, model.config, "")
    with pytest.raises(UserError, match="leave the precision at fp32, or the engine at auto"):
        load(tmp_path, "cpu", precision="int8", engine="torch")
    rounded = load(tmp_path, "cpu", precision="int8")
    assert isinstance(rounded, LanguageModel)
    (found,) = rounded.generate("the dog", GenerationOptions(max_tokens=23, seed=5))
    assert found
    text = "the red dog and the sea"
    assert rounded.score(text).loss == pytest.approx(model.score(text).loss, abs=0.02)
    assert rounded.score(text).loss != model.score(text).loss


def test_what_is_streamed_is_what_is_generated(model: LanguageModel) -> None:
    for seed in range(3):
        options = GenerationOptions(max_tokens=61, seed=seed)
        assert "".join(model.stream("the dog", options)) == model.generate("the dog", options)[0]


def test_samples_differ_and_come_again_from_the_same_seed(model: LanguageModel) -> None:
    options = GenerationOptions(max_tokens=23, samples=5, seed=11)
    found = model.generate(["the", "red"], options)
    assert [len(each) for each in found] == [5, 5]
    assert len(set(found[0])) == 5
    assert found == model.generate(["the", "red"], options)


def test_text_goes_on_beyond_the_context(model: LanguageModel) -> None:
    """Without a limit of positions a text goes on as it is; with one, from the last half of its context."""
    options = GenerationOptions(max_tokens=31, temperature=0.0)
    (text,) = model.generate("the", options)
    network, tokens = model.model, model.tokenizer.encode("the")
    expected: list[int] = []
    while len(expected) < 31:
        limited = not network.positions.extends
        if limited and len(tokens) == 19:
            tokens = tokens[-9:]
        logits = network(torch.tensor([tokens]))[0, -1]
        logits[:2] = -torch.inf
        token = int(logits.argmax())
        if token == 2:
            break
        tokens, expected = [*tokens, token], [*expected, token]
    assert text == model.tokenizer.decode(expected)


def test_a_prompt_longer_than_the_context_is_cut_with_a_warning(model: LanguageModel) -> None:
    options = GenerationOptions(max_tokens=3, temperature=0.0)
    if model.model.positions.extends:
        model.generate(TEXT * 3, options)
        return
    with pytest.warns(LongPromptWarning, match="only the last 9 are used"):
        found = model.generate(TEXT * 3, options)
    cut = model.tokenizer.decode(model.tokenizer.encode(TEXT * 3)[-9:])
    assert found == model.generate(cut, options)


def test_a_stop_string_ends_the_text_before_it(model: LanguageModel) -> None:
    whole = model.generate("the", GenerationOptions(max_tokens=37, seed=5))[0]
    stop = whole[len(whole) // 2 :][:2]
    found = model.generate("the", GenerationOptions(max_tokens=37, seed=5, stop=(stop,)))[0]
    assert found == whole[: whole.index(stop)]


def test_no_prompt_begins_a_new_document(model: LanguageModel) -> None:
    assert model.generate("", GenerationOptions(max_tokens=5))[0]


def test_scores_count_every_token_and_the_end(model: LanguageModel) -> None:
    found = model.score(TEXT)
    assert found.tokens == len(model.tokenizer.encode(TEXT)) + 1
    assert found.bytes == len(TEXT)
    assert found.bits_per_byte == pytest.approx(found.loss * found.tokens / 0.6931472 / found.bytes)
    two = model.score([TEXT, TEXT])
    assert two.tokens == 2 * found.tokens
    with pytest.raises(UserError, match="no text"):
        model.score("")


@pytest.mark.parametrize("wrong", [{"max_tokens": 0}, {"samples": 0}, {"temperature": -1.0}, {"top_p": 2.0}])
def test_wrong_options_are_refused(wrong: dict) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        GenerationOptions(**wrong)


@pytest.mark.parametrize("temperature", [1e-40, 1e-5, 101, float("nan"), -1])
def test_a_temperature_out_of_range_is_refused(model: LanguageModel, tmp_path: Path, run, temperature: float) -> None:
    with pytest.raises(
        UserError, match=r"temperature is .*, but must be 0, for the likeliest text, or from 0.001 to 100"
    ):
        GenerationOptions(temperature=temperature)
    save_model_folder(tmp_path / "model", model.model, model.tokenizer, model.config, "")
    result = run("generate", tmp_path / "model", "the", f"--temperature={temperature}", code=2)
    assert b"temperature is" in result.stderr


def test_samples_end_at_the_lowest_and_the_highest_temperature(model: LanguageModel) -> None:
    for temperature in (0.001, 100):
        options = GenerationOptions(max_tokens=23, temperature=temperature, samples=3)
        assert len(model.generate("the", options)) == 3


def test_one_prompt_gives_its_texts(model: LanguageModel) -> None:
    options = GenerationOptions(max_tokens=5, samples=2)
    assert model.generate("the", options) == model.generate(["the"], options)[0]
