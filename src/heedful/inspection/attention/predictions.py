"""What a model answered, how sure it was, and what else it might have answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heedful.errors import not_numbers

if TYPE_CHECKING:
    from torch import Tensor

RUNNERS_UP = 5


@dataclass(frozen=True)
class Prediction:
    """An answer, its probability, and the likeliest others with theirs.

    `place` is the position that gave it, as the name of a sequence and a number; a whole text or image has none.
    """

    token: str
    probability: float
    runners_up: tuple[tuple[str, float], ...]
    place: tuple[str, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """The prediction as plain data."""
        others = [{"token": token, "probability": share} for token, share in self.runners_up]
        place = None if self.place is None else {"sequence": self.place[0], "position": self.place[1]}
        return {"token": self.token, "probability": self.probability, "runners_up": others, "place": place}


def predictions(
    logits_NV: Tensor,
    answers: Sequence[int | None],
    name: Callable[[int], str],
    places: Sequence[tuple[str, int] | None],
) -> tuple[Prediction, ...]:
    """The predictions of some positions; where no answer is given, the likeliest is taken."""
    shares_NV = logits_NV.double().softmax(-1).cpu()
    if shares_NV.isnan().any():
        raise not_numbers("scores")
    # One more than there are runners-up: the answer itself may be among them.
    best_NC = shares_NV.topk(min(RUNNERS_UP + 1, shares_NV.shape[-1])).indices
    found = []
    for shares, best, answer, place in zip(shares_NV, best_NC.tolist(), answers, places, strict=True):
        chosen = best[0] if answer is None else answer
        others = tuple((name(each), float(shares[each])) for each in best if each != chosen)[:RUNNERS_UP]
        found.append(Prediction(name(chosen), float(shares[chosen]), others, place))
    return tuple(found)
