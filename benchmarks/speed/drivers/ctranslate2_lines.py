"""Lines to lines with the packages tokenizers and CTranslate2: the program that a user of the two would write."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import ctranslate2
from tokenizers import Tokenizer


def main() -> None:
    """Read all lines, translate them at once, and write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--inter", type=int, default=1)
    parser.add_argument("--intra", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--shortest", type=int, default=0)
    parser.add_argument("--longest", type=int, default=256)
    given = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(given.model / "tokenizer.json"))
    translator = ctranslate2.Translator(
        str(given.model), compute_type=given.precision, inter_threads=given.inter, intra_threads=given.intra
    )
    lines = sys.stdin.buffer.read().decode("utf-8").splitlines()
    encoded = tokenizer.encode_batch_fast(lines, add_special_tokens=False)
    number_of = tokenizer.get_vocab()
    names = sorted(number_of, key=number_of.__getitem__)  # what is encoded fast has ids alone
    found = translator.translate_batch(
        [[names[token] for token in each.ids] for each in encoded],
        max_batch_size=given.batch,
        beam_size=given.beam,
        length_penalty=0.0,
        min_decoding_length=given.shortest,
        max_decoding_length=given.longest + 1,  # which counts the end
    )
    ids = [[number_of[name] for name in each.hypotheses[0][: given.longest]] for each in found]
    texts = tokenizer.decode_batch(ids, skip_special_tokens=False)
    sys.stdout.buffer.write("".join(text + "\n" for text in texts).encode("utf-8"))


if __name__ == "__main__":
    main()
