"""The first pass over a corpus, which decides what becomes of its pairs."""

from operator import add
from pathlib import Path

import numpy as np

from heedful.prepared.held_out import content_keys
from heedful.prepared.progress import ThrottledProgress
from heedful.tasks.translation.corpus import ParallelCorpus, RawPairs
from heedful.tasks.translation.fates import KEY_DTYPE, pair_keys
from heedful.tasks.translation.summary import PairLog
from heedful.tasks.translation.tokenizer_sample import TokenizerSample
from heedful.text.cleaning import CleanedPairs, clean_pairs


def survey(corpus: ParallelCorpus, keys_path: Path, log: PairLog, progress: ThrottledProgress) -> TokenizerSample:
    """Clean every pair, write the keys of those that remain to a file, and sample texts for the tokenizer."""
    sample = TokenizerSample()
    done = 0
    with keys_path.open("wb") as file:
        for block in corpus.blocks(log.warn):
            cleaned = clean_and_log(block, log)
            sources = [text.encode("utf-8") for text in cleaned.sources]
            targets = [text.encode("utf-8") for text in cleaned.targets]
            keys = np.empty(len(sources), KEY_DTYPE)
            keys["source"] = content_keys(sources)
            keys["pair"] = pair_keys(keys["source"], content_keys(targets))
            characters = map(add, map(len, cleaned.sources), map(len, cleaned.targets))
            keys["characters"] = np.fromiter(characters, np.uint32, len(sources))
            file.write(keys.tobytes())
            sample.add(keys, sources, targets)
            done += len(block.sources)
            progress("reading", done, None)
    progress("reading", done, done)
    return sample


def clean_and_log(block: RawPairs, log: PairLog) -> CleanedPairs:
    """Clean a block of pairs, and log the pairs that rules apply to."""
    cleaned = clean_pairs(block.sources, block.targets, block.missing, block.faults)
    log.read(len(block.sources))
    for hit in cleaned.hits:
        log.hit(hit.rule, hit.side, block, hit.offset)
    return cleaned
