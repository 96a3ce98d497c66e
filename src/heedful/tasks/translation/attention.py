"""What a translation model attends to in a source and its target."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from heedful.decoding.hypothesis import Request
from heedful.decoding.options import DecodingOptions
from heedful.decoding.run import decode
from heedful.errors import UserError
from heedful.inspection.attention.joined_maps import join_maps
from heedful.inspection.attention.maps import AttentionMap, AttentionMaps, Positions
from heedful.inspection.attention.predictions import predictions
from heedful.inspection.attention.recording import Recording, check_length, one_look
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.tasks.engines import torch_network
from heedful.tasks.translation.answers import UnevenPairWarning
from heedful.tasks.translation.segmentation import Split
from heedful.tasks.translation.task import collate
from heedful.text.cleaning import clean_text

if TYPE_CHECKING:
    from heedful.tasks.translation.pipeline import Translator


def translation_attention(
    translator: Translator, text: str, target: str | None, beam: int, split: Split
) -> AttentionMaps:
    """The maps of all layers, encoder and decoder; a target that is not given is decoded.

    The decoder's position that reads a token predicts the next one: in self-attention it is labelled with what it
    reads, in attention to the source with what it predicts. A text translated in pieces is handled piece by piece.
    """
    if not clean_text(text):
        raise UserError("the text is blank: give one that the model can look at")
    if target is None:
        (prepared,) = translator.prepare([text], split=split)
        sources, targets = prepared.sources, []
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnevenPairWarning)  # the maps show it
            pairs = translator.pieces_of_pair(text, target, split)
        sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    check_length(sum(map(len, sources)), None)
    check_length(max(map(len, sources)), translator.model.max_length)
    if target is None:
        targets = _decoded(translator, sources, beam)
    check_length(max(map(len, targets)), translator.model.longest_target(0), "target")
    texts = (clean_text(text), " ".join(map(translator.text_of, targets)) if target is None else clean_text(target))
    recorded = [_recorded(translator, *pair) for pair in zip(sources, targets, strict=True)]
    return replace(join_maps(recorded, {"target": "source"}), texts=texts)


def _decoded(translator: Translator, sources: list[list[int]], beam: int) -> list[list[int]]:
    requests = [Request(number, source) for number, source in enumerate(sources)]
    with one_thread(), flushed_denormals():
        found = {each.index: each for each in decode(translator.model, requests, DecodingOptions(beam=beam), 8)}
    return [found[number].hypotheses[0].tokens for number in range(len(sources))]


def _recorded(translator: Translator, source: list[int], target: list[int]) -> AttentionMaps:
    model, name = torch_network(translator), translator.tokenizer.token_text
    recording = Recording(model)
    batch = collate([np.array(source)], [np.array(target, dtype=np.int64)], model.special_tokens).to(model.device)
    with one_look():
        logits_TV = recording.view(batch.source_BS, batch.target_BT, batch.source_lengths_B)[0]
    answers = batch.labels_BT[0].tolist()
    read = batch.source_BS[0].tolist()
    maps = [
        *recording.maps("encoder", "encoder", "source", "source"),
        *recording.maps("decoder", "decoder", "decoder_input", "decoder_input"),
        *recording.maps("cross", "cross", "target", "source"),
    ]
    sequences = {
        "source": Positions.in_a_row([name(token) for token in read]),
        "target": Positions.along([name(token) for token in answers], len(read)),
        "decoder_input": Positions.in_a_row([name(token) for token in batch.target_BT[0].tolist()]),
    }
    outputs = predictions(logits_TV, answers, name, [("target", place) for place in range(len(answers))])
    return AttentionMaps(translator.name, translator.config.family, _used(sequences, maps), maps, outputs)


def _used(sequences: dict[str, Positions], maps: list[AttentionMap]) -> dict[str, Positions]:
    """The sequences that some map uses: the decoder of a recurrent model does not attend to its input."""
    names = {name for each in maps for name in (each.queries, each.keys)}
    return {name: positions for name, positions in sequences.items() if name in names}
