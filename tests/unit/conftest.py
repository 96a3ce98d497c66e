import random

import pytest

from heedful.text.tokenizer import Tokenizer

SOURCE = "a the dog cat man woman house runs sees gives 12 345 red big café old's, . !"
TARGET = "ein der Hund Katze Mann Frau Straße läuft sieht gibt 12 345 rot groß Übung, . !"


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Distinct pairs of sentences of 2 to 12 words."""
    rng = random.Random(seed)
    source_words, target_words = SOURCE.split(), TARGET.split()
    pairs: dict[tuple[str, str], None] = {}
    while len(pairs) < count:
        places = [rng.randrange(len(source_words)) for _ in range(rng.randint(2, 12))]
        source = " ".join(source_words[i] for i in places) + f" {len(pairs)}"
        pairs[source, " ".join(target_words[i % len(target_words)] for i in places) + f" {len(pairs)}"] = None
    return list(pairs)


@pytest.fixture(scope="session")
def sentence_pairs() -> list[tuple[str, str]]:
    return sentences(307, seed=7)


@pytest.fixture(scope="session")
def tokenizer(sentence_pairs: list[tuple[str, str]]) -> Tokenizer:
    return Tokenizer.train((text for pair in sentence_pairs for text in pair), 347)
