"""The steps of a decoder, one token after another, as a trace shows them."""

import numpy as np
import pytest
import torch

from heedful.errors import UserError
from heedful.inspection.trace.trace import Trace
from heedful.tasks.translation.answers import LongTextWarning
from traced_models import SOURCE, TARGET, TOKENIZER


def test_a_step_is_what_the_model_computes_of_so_many_tokens(make_case) -> None:
    """The newest row of a step is the last row of a trace of the shorter beginning."""
    pipeline = make_case("encoder-decoder").pipeline
    whole = pipeline.trace(SOURCE, TARGET)
    ids = TOKENIZER.encode(TARGET)
    for number in range(len(ids) + 1):
        step = whole.step(number)
        shorter = pipeline.trace(SOURCE, TOKENIZER.decode(ids[:number])) if number else None
        assert step.tokens["target"] == whole.tokens["target"][: number + 1]
        assert step["decoder.1.attention.weights"].shape[2:] == (1, number + 1)
        assert step["decoder.1.cross_attention.weights"].shape[2:] == (1, len(whole.tokens["source"]))
        assert torch.equal(step["encoder.1.feed_forward.output"], whole["encoder.1.feed_forward.output"])
        if shorter is not None and len(shorter.tokens["target"]) == number + 1:
            for name in ("logits", "decoder.1.attention.masked", "decoder.0.cross_attention.queries"):
                axis = whole.points[name].axis("T")
                last = shorter[name].narrow(axis, number, 1)
                torch.testing.assert_close(step[name], last, atol=2e-5, rtol=1e-5)


def test_the_decoder_reads_the_models_own_output(make_case) -> None:
    pipeline = make_case("encoder-decoder").pipeline
    trace, translated = pipeline.trace(SOURCE), pipeline.translate(SOURCE)
    assert trace.tokens["target"] == ["⟨start⟩", *translated.tokens] and trace.texts[1] == translated.text
    assert trace.tokens["next"] == [*translated.tokens, "⟨end⟩"]
    scores = trace["logits"][0].log_softmax(-1)
    ids = trace["target_embedding.ids"][0, 1:].tolist()
    found = [float(row[token]) for row, token in zip(scores, ids, strict=False)]
    assert found == pytest.approx(translated.token_scores[: len(found)], abs=1e-4)


def test_what_has_no_steps(make_case) -> None:
    trace: Trace = make_case("pair").trace()
    with pytest.raises(UserError, match="answers in one go"):
        trace.step(0)
    trace = make_case("xlnet").trace()
    assert trace.step(3)["blocks.1.query.attention.weights"].shape[2:] == (1, 4)
    with pytest.raises(UserError, match="there is no step 99: the steps are 0 to"):
        trace.step(99)
    with pytest.raises(UserError, match="did you mean 'logits'"):
        trace["logit"]


def test_what_cannot_be_traced(make_case) -> None:
    pipeline = make_case("encoder-decoder").pipeline
    with pytest.raises(UserError, match="blank"):
        pipeline.trace(" \n")
    with pytest.warns(LongTextWarning), pytest.raises(UserError, match="translated in 63 pieces, and one"):
        pipeline.trace("dog " * 499, split="none")
    with pytest.raises(UserError, match="translated in 2 pieces, and one can be followed at a time"):
        pipeline.trace("A dog. A cat.", split="sentences")
    with pytest.raises(UserError, match="translated in 2 pieces"):
        pipeline.trace("A dog. A cat.", "Ein Hund. Eine Katze.", split="sentences")
    with pytest.raises(UserError, match="lower resolution"):
        make_case("class token").pipeline.trace(np.zeros((13, 17), np.uint8), (160, 128))
