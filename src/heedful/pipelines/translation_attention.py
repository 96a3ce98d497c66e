"""What a translation model attends to, for a source and its target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch import nn

from heedful.data.cleaning import clean_text
from heedful.decoding.hypothesis import Request
from heedful.decoding.options import DecodingOptions
from heedful.decoding.scheduler import decode
from heedful.errors import UserError
from heedful.inspection.attention_map import AttentionMap, Positions
from heedful.inspection.attention_maps import AttentionMaps
from heedful.inspection.predictions import predictions
from heedful.inspection.recording import Recording, check_length, one_look
from heedful.machine import flushed_denormals, one_thread
from heedful.tasks.translation import collate

if TYPE_CHECKING:
    from heedful.pipelines.translator import Translator


def translation_attention(translator: Translator, text: str, target: str | None, beam: int) -> AttentionMaps:
    """The maps of all layers, encoder and decoder; a target that is not given is decoded.

    The decoder's position that reads a token predicts the next one: in self-attention it is called by what it reads,
    in attention to the source by what it predicts.
    """
    text = clean_text(text)
    source = translator.tokenizer.encode(text)
    if not source:
        raise UserError("the text is blank: give one that the model can look at")
    check_length(len(source), translator.model.max_length)
    if target is not None:
        target = clean_text(target)
        tokens = translator.tokenizer.encode(target)
        check_length(len(tokens), translator.model.longest_target(0), "target")
        return _recorded(translator, source, tokens, (text, target))
    with one_thread(), flushed_denormals():
        (decoded,) = decode(translator.model, [Request(0, source)], DecodingOptions(beam=beam), 1)
    tokens = decoded.hypotheses[0].tokens
    return _recorded(translator, source, tokens, (text, translator.text_of(tokens)))


def _recorded(translator: Translator, source: list[int], target: list[int], texts: tuple[str, str]) -> AttentionMaps:
    model, name = translator.model, translator.tokenizer.token_text
    assert isinstance(model, nn.Module)
    recording = Recording(model)
    batch = collate([np.array(source)], [np.array(target, dtype=np.int64)], model.special_tokens).to(model.device)
    with one_look():
        logits_TV = recording.view(batch.source_BS, batch.source_lengths_B, batch.target_BT)[0]
    answers = batch.labels_BT[0].tolist()
    read = batch.source_BS[0].tolist()
    maps = [
        *recording.maps("encoder", "encoder.{}.attention", "source", "source"),
        *recording.maps("decoder", "decoder.{}.attention", "decoder_input", "decoder_input"),
        *recording.maps("cross", "decoder.{}.cross_attention", "target", "source"),
        *recording.maps("cross", "decoder.cross_attention", "target", "source"),  # of a recurrent model
    ]
    sequences = {
        "source": Positions.in_a_row([name(token) for token in read]),
        "target": Positions.along([name(token) for token in answers], len(read)),
        "decoder_input": Positions.in_a_row([name(token) for token in batch.target_BT[0].tolist()]),
    }
    outputs = predictions(logits_TV, answers, name, [("target", place) for place in range(len(answers))])
    return AttentionMaps(translator.name, translator.config.family, _used(sequences, maps), maps, outputs, texts=texts)


def _used(sequences: dict[str, Positions], maps: list[AttentionMap]) -> dict[str, Positions]:
    """The sequences that some map lies between: the decoder of a recurrent model does not attend to its input."""
    names = {name for each in maps for name in (each.queries, each.keys)}
    return {name: positions for name, positions in sequences.items() if name in names}
