"""A GPT beside CTranslate2 and Hugging Face: one text at a time, always the likeliest token."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.speed.comparisons import Comparisons
from benchmarks.speed.engine_goals import GPT_BANDWIDTH, GPT_CTRANSLATE2, GPT_HUGGING_FACE
from benchmarks.speed.gpt_model import GptFolders, gpt_folders
from benchmarks.speed.limits import memory_bandwidth
from benchmarks.speed.measuring import interleaved
from benchmarks.speed.peer import Peer
from benchmarks.speed.setups import LOOKS, thread_choices
from heedful.machine.cores import available_cores
from heedful.text.tokenizer import Tokenizer

PROMPT, NEW, FEW = 16, 256, 32
# The largest relative difference of the log-probability of the same text.
TOLERANCE = 1e-3
Texts = dict[str, tuple[list[int], float]]


@dataclass
class Generator:
    """A running system and how it was started."""

    peer: Peer
    words: str
    versions: dict[str, str]

    def ask(self, prompt: list[int], length: int) -> Any:
        """Let it continue a text."""
        return self.peer.ask("generate", prompt=prompt, length=length)

    def speed(self, prompt: list[int], length: int) -> float:
        """Tokens a second."""
        answer = self.ask(prompt, length)
        assert len(answer["tokens"]) == length
        return length / float(answer["seconds"])


def measure(found: Comparisons, tokenizer: Tokenizer, quick: bool, rounds: int) -> None:
    """Verify that all three are the same model, and then measure them by turns."""
    folders = gpt_folders(tokenizer, quick)
    draw = random.Random(1)
    prompt = [draw.randrange(3, folders.vocabulary) for _ in range(PROMPT)]
    length = FEW if quick else NEW
    _verify(folders, prompt)
    systems = {
        "heedful": _fastest("heedful", folders, "int8", prompt),
        "CTranslate2 Generator int8": _fastest("ctranslate2", folders, "int8", prompt),
        "Hugging Face generate": _fastest("huggingface", folders, "float32", prompt),
    }
    cores = available_cores()
    bandwidth = memory_bandwidth(cores)
    speeds = interleaved({name: partial(each.speed, prompt, length) for name, each in systems.items()}, rounds)
    # The better of two looks, so that the share is not too high.
    bandwidth = max(bandwidth, memory_bandwidth(cores))
    size = "a tiny GPT" if quick else "gpt2_small"
    what = f"{size}: tokens a second, int8, {length} new tokens, greedy"
    for name, goal in (("CTranslate2 Generator int8", GPT_CTRANSLATE2), ("Hugging Face generate", GPT_HUGGING_FACE)):
        details = {"setting": systems[name].words, "peer_versions": systems[name].versions}
        found.add(what, name, "speed", speeds["heedful"], speeds[name], "tokens/s", goal, **details)
    share = bandwidth_share(folders.weights_per_token, speeds["heedful"].median, bandwidth)
    what = f"{size}: its weights, read once a token, int8"
    found.add_ratio(what, f"the memory bandwidth, {bandwidth:.1f} GB/s", share, "%", GPT_BANDWIDTH)
    for each in systems.values():
        each.peer.close()


def bandwidth_share(weights: int, tokens_per_second: float, gigabytes_per_second: float) -> float:
    """Per cent of the bandwidth, with a byte for each weight."""
    return 100 * weights * tokens_per_second / (gigabytes_per_second * 1e9)


def agreement(texts: Texts) -> None:
    """Raise an error unless all systems give the same tokens, with the same log-probability."""
    first, *others = texts.items()
    for name, (tokens, score) in others:
        if tokens != first[1][0]:
            place = next((i for i, (a, b) in enumerate(zip(tokens, first[1][0], strict=False)) if a != b), len(tokens))
            raise ValueError(f"{name} and {first[0]} give different texts, from token {place} on")
        if abs(score - first[1][1]) > TOLERANCE * max(1.0, abs(score)):
            raise ValueError(f"{name} gives a text the score {score:.5f}, {first[0]} {first[1][1]:.5f}")


def _verify(folders: GptFolders, prompt: list[int]) -> None:
    texts: Texts = {}
    for name in ("heedful", "ctranslate2", "huggingface"):
        generator = _started(name, folders, "float32", 1)
        answer = generator.ask(prompt, FEW)
        texts[name] = answer["tokens"], answer["score"]
        generator.peer.close()
    agreement(texts)


def _fastest(name: str, folders: GptFolders, precision: str, prompt: list[int]) -> Generator:
    """A system with its best number of threads, by a few looks at each; heedful has all cores."""
    cores = available_cores()
    if name == "heedful":
        return _started(name, folders, precision, cores, words=f"{cores} threads")
    running = []
    for threads, variables, words in thread_choices(cores):
        generator = _started(name, folders, precision, threads, variables, words)
        generator.speed(prompt, FEW)
        running.append((max(generator.speed(prompt, FEW) for _ in range(LOOKS)), generator))
    best = max(running, key=lambda pair: pair[0])[1]
    for _, generator in running:
        if generator is not best:
            generator.peer.close()
    return best


def _started(
    name: str,
    folders: GptFolders,
    precision: str,
    threads: int,
    variables: tuple[tuple[str, str], ...] = (),
    words: str = "",
) -> Generator:
    peer = Peer(f"{name}_generation", name, threads, dict(variables))
    arguments: dict[str, Any] = {"threads": threads}
    if name == "heedful":
        arguments |= {"model": str(folders.heedful), "precision": "fp32" if precision == "float32" else precision}
    elif name == "ctranslate2":
        arguments |= {"model": str(folders.ctranslate2[precision]), "precision": precision}
    else:
        arguments |= {"model": str(folders.huggingface)}
    return Generator(peer, words, peer.ask("load", **arguments)["versions"])
