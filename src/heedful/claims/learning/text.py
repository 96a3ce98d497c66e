"""Real text that comes with every Python: the language reference, as `help()` shows it, by characters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pydoc_data.topics import topics

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.claims.evidence import shown_loss

HELD_OUT_EVERY = 10
# All rare characters are read as the first one.
MOST_CHARACTERS = 96


@dataclass(frozen=True)
class ReferenceText:
    """The ids of the characters to learn from, and of those that are held out."""

    train: Tensor
    held_out: Tensor
    characters: str

    @property
    def vocabulary_size(self) -> int:
        """How many different characters there are."""
        return len(self.characters)


@cache
def reference_text() -> ReferenceText:
    """All help texts; every tenth of them is held out."""
    texts = [text for _, text in sorted(topics.items())]
    counts: dict[str, int] = {}
    for character in "".join(texts):
        counts[character] = counts.get(character, 0) + 1
    frequent = sorted(sorted(counts), key=lambda each: -counts[each])[: MOST_CHARACTERS - 1]
    characters = "\N{REPLACEMENT CHARACTER}" + "".join(sorted(frequent))
    numbers = {character: number for number, character in enumerate(characters)}

    def ids(chosen: list[str]) -> Tensor:
        return torch.tensor([numbers.get(each, 0) for each in "\n".join(chosen)])

    held_out = texts[::HELD_OUT_EVERY]
    train = [text for number, text in enumerate(texts) if number % HELD_OUT_EVERY]
    return ReferenceText(ids(train), ids(held_out), characters)


@cache
def counted_pairs_loss() -> float:
    """The held-out loss of counting which character follows which: a worse model has learned nothing about context."""
    text = reference_text()
    counts = torch.full((text.vocabulary_size, text.vocabulary_size), 0.1)
    counts.index_put_((text.train[:-1], text.train[1:]), torch.ones(()), accumulate=True)
    logp = (counts / counts.sum(1, keepdim=True)).log()
    return -float(logp[text.held_out[:-1], text.held_out[1:]].mean())


def windows(ids: Tensor, rows: int, length: int, seed: tuple[int, ...]) -> Tensor:
    """B T: windows of a text that begin at random places."""
    starts = np.random.default_rng(seed).integers(0, len(ids) - length, rows)
    return torch.stack([ids[start : start + length] for start in starts])


def held_out_windows(length: int, characters: int = 16_384) -> Tensor:
    """B T+1: the same windows of the held-out text for every model."""
    return windows(reference_text().held_out, max(1, characters // length), length + 1, (0, length))


def next_token_loss(model: nn.Module, ids_BT: Tensor, smoothing: float = 0.0) -> Tensor:
    """The mean loss of each token given those before it in its row."""
    logits_BTV = model(ids_BT[:, :-1])
    return F.cross_entropy(logits_BTV.flatten(0, 1), ids_BT[:, 1:].flatten(), label_smoothing=smoothing)


@torch.no_grad()
def held_out_scores(model: nn.Module, length: int) -> tuple[float, float]:
    """The loss per character of the held-out text, and the share of characters that are predicted right."""
    model.eval()
    ids_BT = held_out_windows(length)
    logits_BTV = torch.cat([model(part[:, :-1]) for part in ids_BT.split(32)])
    targets = ids_BT[:, 1:]
    loss = float(F.cross_entropy(logits_BTV.flatten(0, 1), targets.flatten()))
    return shown_loss(loss), float((logits_BTV.argmax(-1) == targets).float().mean())
