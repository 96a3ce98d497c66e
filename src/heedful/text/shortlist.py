"""A separate vocabulary for each sentence: the tokens that are frequent anyway, and those that its words call for.

The output layer then does a fraction of its work. What a sentence may use depends on its own source alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UserError
from heedful.files import write_arrays
from heedful.text.special_tokens import SpecialTokens
from heedful.weights_seal import OF_TOKENIZER, checksum_of, is_sealed

FILE = "shortlist.safetensors"
# The most tokens that a sentence adds to the frequent ones.
LONGEST_SHORTLIST = 128
# The end is the first of the frequent tokens, hence of the columns.
END_COLUMN = 0


@dataclass(frozen=True)
class Shortlist:
    """The F frequent target tokens, the end first, and for each source token E others, how strongly it calls for them.

    A strength of 0 stands for no token. Special tokens other than the end are not among them.
    """

    frequent_F: NDArray[np.int64]
    likely_VE: NDArray[np.int64]
    strengths_VE: NDArray[np.float32]

    def own_tokens(self, source: NDArray[np.int64]) -> NDArray[np.int64]:
        """The tokens that a source calls for most strongly, without the frequent ones."""
        tokens, strengths = self.likely_VE[source].ravel(), self.strengths_VE[source].ravel()
        order = np.lexsort((tokens, -strengths))
        order = order[strengths[order] > 0]
        _, firsts = np.unique(tokens[order], return_index=True)
        return tokens[order][np.sort(firsts)[:LONGEST_SHORTLIST]]

    def save(self, folder: Path) -> None:
        """Write it into a model folder."""
        arrays: dict[str, NDArray[Any]] = {
            "frequent": self.frequent_F,
            "likely": self.likely_VE,
            "strengths": self.strengths_VE,
        }
        write_arrays(folder / FILE, arrays, _tokenizer_of(folder))


def load_shortlist(folder: Path, vocabulary: int, special: SpecialTokens) -> Shortlist:
    """The shortlist of a model folder, for a model with this many tokens, of which some are special."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not (folder / FILE).is_file():
        raise UserError(
            f"{folder} has no shortlist: make one with heedful shortlist {folder} --source ... --target ..."
        )
    try:
        _check_seal(folder)
        arrays = load_file(folder / FILE)
        found = Shortlist(arrays["frequent"], arrays["likely"], arrays["strengths"])
        _check_arrays(found)
    except UserError:  # of another model
        raise
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise UserError(f"{folder / FILE} is broken: {error}; make it again with heedful shortlist") from None
    if len(found.likely_VE) != vocabulary or max(found.frequent_F.max(), found.likely_VE.max()) >= vocabulary:
        raise UserError(f"{folder / FILE} belongs to another vocabulary: make it again with heedful shortlist")
    if reason := _wrong_tokens(found, special):
        raise UserError(f"{folder / FILE} is broken: {reason}; make it again with heedful shortlist")
    return found


def _tokenizer_of(folder: Path) -> bytes | None:
    file = folder / "tokenizer.json"
    return file.read_bytes() if file.is_file() else None


def _check_seal(folder: Path) -> None:
    """Raise an error if the file is not as it was written, or was written for another tokenizer."""
    from safetensors import safe_open

    path = folder / FILE
    with safe_open(path, "numpy") as opened:
        metadata = opened.metadata() or {}
    with path.open("rb") as file:
        if not is_sealed(file, int.from_bytes(file.read(8), "little"), metadata):
            raise ValueError("it does not have the checksum that was written with it")
    tokenizer, expected = _tokenizer_of(folder), metadata.get(OF_TOKENIZER)
    if expected is not None and (tokenizer is None or checksum_of(tokenizer) != expected):
        raise UserError(f"{path} was made for another model: make it again with heedful shortlist")


def _check_arrays(found: Shortlist) -> None:
    expected = ((found.frequent_F, np.int64, 1), (found.likely_VE, np.int64, 2), (found.strengths_VE, np.float32, 2))
    if any(each.dtype != kind or each.ndim != axes or not each.size for each, kind, axes in expected):
        raise ValueError("its arrays have other types or axes than they should")
    if found.likely_VE.shape != found.strengths_VE.shape or min(found.frequent_F.min(), found.likely_VE.min()) < 0:
        raise ValueError("its arrays do not go together")


def _wrong_tokens(found: Shortlist, special: SpecialTokens) -> str | None:
    """What is wrong with the tokens that a shortlist names, in words; each may be offered to a sentence once."""
    frequent = found.frequent_F
    if frequent[END_COLUMN] != special.end:
        return "its first token is not the end"
    if np.isin(frequent[1:], sorted(special.ids)).any() or len(np.unique(frequent)) < len(frequent):
        return "a frequent token is special, or comes twice"
    if np.isin(found.likely_VE[found.strengths_VE > 0], [*frequent, *special.ids]).any():
        return "a source token calls for a token that is special, or frequent"
    return None
