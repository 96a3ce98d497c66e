"""Other tensors in the place of a model's own: its answers are then those of the changed computation."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from heedful.errors import UserError
from heedful.tasks.language_modeling.generation import GenerationOptions
from traced_models import CASES, IMAGE, SOURCE, TARGET, TOKENIZER

OTHER = "blue sun, red dog home sea"


def test_a_patch_of_nothing_new_changes_nothing(case) -> None:
    plain = case.trace()
    same = {name: (lambda tensor: tensor) for name in plain if name != "probabilities"}
    with case.pipeline.patched(same) as changed:
        inside = case.logits(changed.model)
    torch.testing.assert_close(inside, plain["logits"], atol=3e-5, rtol=1e-5)


def test_own_tensors_put_back_give_the_same_answer(case) -> None:
    """From any point on, what was computed from another input is forgotten, if all of its inputs are replaced."""
    plain = case.trace()
    with case.pipeline.patched({}) as changed:
        for name, tensor in plain.items():
            if name in ("probabilities", "logits") or name.endswith((".mask", ".ids", ".positions")):
                continue
            changed.model.patches.patches = {name: tensor}
            torch.testing.assert_close(case.logits(changed.model), plain["logits"], atol=3e-5, rtol=1e-5)
            changed.model.patches.patches = {name: torch.zeros_like}
            assert not torch.equal(case.logits(changed.model), plain["logits"]), name
        changed.model.patches.patches = {}


def test_translating_without_a_head_is_translating_without_its_columns(make_case) -> None:
    """A head that gives zeros is the same as an output projection without its columns, in a whole search."""
    pipeline, cut = make_case("encoder-decoder").pipeline, make_case("encoder-decoder").pipeline

    def without_first_head(mixed_BHTV: torch.Tensor) -> torch.Tensor:
        mixed_BHTV[:, 0] = 0
        return mixed_BHTV

    with torch.no_grad():
        for block in cut.model.decoder:
            block.cross_attention.output_projection.weight[:, :5] = 0
    expected = cut.translate([SOURCE, OTHER], beam=3)
    assert [each.text for each in expected] != [each.text for each in pipeline.translate([SOURCE, OTHER], beam=3)]
    patches = {f"decoder.{layer}.cross_attention.mixed": without_first_head for layer in range(2)}
    with pipeline.patched(patches) as changed:
        found = changed.translate([SOURCE, OTHER], beam=3)
        scored = changed.score(SOURCE, TARGET)
        aligned = changed.translate(SOURCE, beam=3, alignment=True)
        traced = changed.trace(SOURCE)
    assert [each.text for each in found] == [each.text for each in expected]
    np.testing.assert_allclose([each.score for each in found], [each.score for each in expected], atol=1e-4)
    np.testing.assert_allclose(scored.token_scores, cut.score(SOURCE, TARGET).token_scores, atol=1e-4)
    assert aligned.alignment == cut.translate(SOURCE, beam=3, alignment=True).alignment
    assert traced.texts[1] == cut.trace(SOURCE, beam=5).texts[1]
    assert not traced["decoder.1.cross_attention.mixed"][:, 0].any()


def test_a_translation_by_the_memory_of_another_text_is_that_ones(make_case) -> None:
    pipeline = make_case("encoder-decoder").pipeline
    own, other = pipeline.translate(SOURCE), pipeline.translate("red the dog runs home")
    source = pipeline.trace("red the dog runs home", TARGET)["encoder.1.feed_forward_residual.output"]
    assert source.shape[1] == len(pipeline.trace(SOURCE, TARGET).tokens["source"]) and own.text != other.text
    with pipeline.patched({"encoder.1.feed_forward_residual.output": source}) as changed:
        assert changed.translate(SOURCE).text == other.text
    assert pipeline.translate(SOURCE) == own


@pytest.mark.parametrize("name", ["decoder-only, rotary, window, shared", "decoder-only, alibi", "xlnet"])
def test_generated_text_follows_patched_logits(name: str, make_case) -> None:
    pipeline = make_case(name).pipeline
    options = GenerationOptions(max_tokens=7, temperature=0)
    plain = pipeline.generate(["the red", "sun"], options)
    with pipeline.patched({"logits": lambda logits: logits * 1}) as changed:
        assert changed.generate(["the red", "sun"], options) == plain
        score = changed.score([SOURCE, TARGET])
    assert score.loss == pytest.approx(pipeline.score([SOURCE, TARGET]).loss, abs=1e-4)
    token = TOKENIZER.encode("dog")[-1]

    def always(logits: torch.Tensor) -> torch.Tensor:
        logits[..., token] = 1000
        return logits

    with pipeline.patched({"logits": always}) as changed:
        assert changed.generate("the red", options)[0] == TOKENIZER.token_text(token) * 7


def test_labels_follow_patches(make_case) -> None:
    classifier, images = make_case("pair").pipeline, make_case("class token").pipeline
    flip = {"logits": lambda logits: -logits}
    with classifier.patched(flip) as changed:
        found = changed.classify((SOURCE, TARGET))
    assert [label for label, _ in found.ranking] == [x for x, _ in classifier.classify((SOURCE, TARGET)).ranking[::-1]]
    with images.patched(flip) as changed:
        found = changed.classify(IMAGE)
    assert [label for label, _ in found.ranking] == [label for label, _ in images.classify(IMAGE).ranking[::-1]]
    masked = make_case("masked").pipeline
    with masked.patched({"blocks.1.attention.mixed": torch.zeros_like}) as changed:
        assert changed.embed(SOURCE).shape == (22,)
        assert not np.allclose(changed.embed(SOURCE), masked.embed(SOURCE), atol=1e-2)


def test_others_do_not_notice(make_case) -> None:
    pipeline = make_case("encoder-decoder").pipeline
    texts = [SOURCE, OTHER, "dog"] * 5
    alone = pipeline.translate(texts)
    with pipeline.patched({"decoder.0.attention.mixed": torch.zeros_like}) as changed, ThreadPoolExecutor(2) as pool:
        running = pool.submit(pipeline.translate, texts)
        patched = pool.submit(changed.translate, texts[:3])
        assert running.result() == alone
        assert patched.result() != alone[:3]
    before = {id(parameter) for parameter in pipeline.model.parameters()}
    assert before == {id(parameter) for parameter in changed.model.parameters()}


def test_a_tensor_stands_for_the_first_positions_of_what_is_written(make_case) -> None:
    pipeline = make_case("decoder-only, alibi").pipeline
    short = torch.zeros(1, 2, 22)
    with pipeline.patched({"embedding.output": short}) as changed:
        found = changed.trace(SOURCE)["embedding.output"]
    plain = pipeline.trace(SOURCE)["embedding.output"]
    assert not found[:, :2].any() and torch.equal(found[:, 2:], plain[:, 2:])


def test_patches_that_cannot_be() -> None:
    torch.manual_seed(5)
    pipeline = CASES["encoder-decoder"]().pipeline
    refused = [
        ({"encoder.0.attention.score": torch.zeros(1)}, "did you mean 'encoder.0.attention.scores'"),
        ({"logits": 3}, "the patch of logits is 3, but must be a tensor or a function of one"),
        ([1], "must be a dict from names"),
        ({"decoder.0.attention.turned_keys": torch.zeros(1)}, "computes no 'decoder.0.attention.turned_keys'"),
    ]
    for patches, message in refused:
        with pytest.raises(UserError, match=message), pipeline.patched(patches):
            pass
    with (
        pytest.raises(UserError, match=r"gives a tensor of the shape \(1, 3, 22\), but must give .* \(1, 9, 22\)"),
        pipeline.patched({"encoder.1.attention.output": torch.zeros(1, 3, 22)}) as changed,
    ):
        changed.translate(SOURCE)
    with (
        pytest.raises(UserError, match=r"nothing was patched at 'encoder.0.attention.mask'"),
        pipeline.patched({"encoder.0.attention.mask": torch.ones_like}) as changed,
    ):
        changed.trace(SOURCE, TARGET)
    with pipeline.patched({"logits": torch.zeros_like}) as changed, pytest.raises(UserError, match="use `trace`"):
        changed.attention(SOURCE)
