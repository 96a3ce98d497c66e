"""Decoding by the engine, behind the same interface as `heedful.decoding.scheduler.Scheduler`."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from ctypes import byref, c_double, c_float, c_int32, c_int64, c_void_p
from dataclasses import dataclass

from heedful.core.interface import CoreRequest, SearchSettings, check, check_ids, engine, filled, last_error
from heedful.core.model import CoreModel, as_ints
from heedful.core.settings import LONGEST_TEXT
from heedful.decoding.hypothesis import Decoded, Hypothesis, Request
from heedful.decoding.options import DecodingOptions
from heedful.decoding.planning import Planned, check_options, plan
from heedful.decoding.progress import Watch
from heedful.errors import UserError

# Milliseconds that the engine decodes before it can be interrupted.
AT_A_TIME = 50
# The most threads that the engine has room for (core/threads.h).
MOST_THREADS = 64
# Sentences that a thread decodes side by side: enough for large products, few enough for the cache.
MOST_SENTENCES = 32


@dataclass(frozen=True)
class CoreProgress:
    """A sentence as it is right after a step."""

    index: int
    length: int
    last: tuple[int, float]
    scheduler: CoreScheduler

    @property
    def tokens(self) -> list[int]:
        """All tokens of the best hypothesis so far, which may have ended."""
        tokens, last, score = (c_int32 * self.length)(), c_int32(), c_float()
        arguments = (self.scheduler.handle, self.index, tokens, self.length, byref(last), byref(score))
        engine().heedful_decoder_progress(*arguments)
        return tokens[:]

    def likeliest(self, count: int) -> list[tuple[int, float]]:
        """The likeliest tokens at the place of the last one, with their log-probabilities."""
        count = min(count, self.scheduler.model.config.vocabulary_size)
        tokens, scores = (c_int32 * count)(), (c_float * count)()
        found = engine().heedful_decoder_likeliest(self.scheduler.handle, self.index, count, tokens, scores)
        return list(zip(tokens[:found], scores[:found], strict=True))


class CoreScheduler:
    """Decodes requests side by side, on all threads; they may be added and cancelled between steps."""

    def __init__(self, model: CoreModel, options: DecodingOptions, max_sentences: int) -> None:
        check_options(model, options, max_sentences)
        self.model, self.options, self.max_sentences = model, options, max_sentences
        self.complete = self.takes_turns = False
        self.watches: dict[int, Watch] = {}
        sampling, threads = options.sampling, max(1, min(model.threads, MOST_THREADS))
        settings = filled(
            SearchSettings,
            length_penalty=options.length_penalty,
            temperature=sampling.temperature if sampling else 1.0,
            top_p=sampling.top_p if sampling and sampling.top_p is not None else 1.0,
            repetition_penalty=options.repetition_penalty,
            no_repeat_ngram=options.no_repeat_ngram,
            beam=options.rows,
            nbest=options.nbest,
            min_length=options.min_length,
            sampling=sampling is not None,
            top_k=sampling.top_k if sampling and sampling.top_k else 0,
            keep_logits=1,
            threads=threads,
            sentences=min(-(-max_sentences // threads), MOST_SENTENCES),
        )
        self._num_slots = threads * settings.sentences
        self.handle = c_void_p(engine().heedful_decoder_new(model.handle, settings))
        if not self.handle:
            raise UserError(last_error())
        self._finalizer = weakref.finalize(self, engine().heedful_decoder_free, self.handle)

    @property
    def num_waiting(self) -> int:
        """How many requests have not been encoded yet."""
        return int(engine().heedful_decoder_waiting(self.handle))

    @property
    def num_running(self) -> int:
        """How many sentences are under way."""
        return int(engine().heedful_decoder_running(self.handle))

    @property
    def num_steps(self) -> int:
        """Steps of sentences so far."""
        return int(engine().heedful_decoder_steps(self.handle))

    @property
    def num_slots(self) -> int:
        """How many sentences there is room for."""
        return self._num_slots

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting or under way."""
        return not self.num_waiting and not self.num_running

    def add(self, requests: Iterable[Request], watch: Watch | None = None) -> None:
        """Take requests, of which the longest go first; their indices must differ from those of all under way."""
        planned = [plan(request, self.model, self.options) for request in requests]
        if not planned:
            return
        entries = (CoreRequest * len(planned))(*map(self._entry, planned))
        check(engine().heedful_decoder_add(self.handle, entries, len(planned)))
        if watch:
            self.watches.update((each.request.index, watch) for each in planned)

    def _entry(self, planned: Planned) -> CoreRequest:
        request = planned.request
        default = (self.options.sampling.seed if self.options.sampling else 0, request.index)
        seed, number = request.draw or default
        check_ids([planned.first])
        own_tokens = self.model.own_tokens(planned.prefilled)
        return CoreRequest(
            index=request.index,
            source=as_ints(planned.prefilled),
            prefix=as_ints(request.prefix),
            shortlist=as_ints(own_tokens),
            source_length=len(planned.prefilled),
            prefix_length=len(request.prefix),
            shortlist_length=len(own_tokens),
            first=planned.first,
            longest=min(planned.longest, LONGEST_TEXT - len(planned.prefilled) - 1),
            seed=seed,
            number=number,
        )

    def cancel(self, index: int) -> None:
        """Give up the request of that index, wherever it stands, if it is not done."""
        self.watches.pop(index, None)
        check(engine().heedful_decoder_cancel(self.handle, index))

    def step(self) -> list[Decoded]:
        """Decode one token of every sentence, or several where nobody waits for each; return the sentences done."""
        if self.watches or self.takes_turns:
            check(engine().heedful_decoder_step(self.handle))
        else:
            check(engine().heedful_decoder_run(self.handle, AT_A_TIME))
        done = self._take_done()
        for each in done:
            self.watches.pop(each.index, None)
        for index, watch in list(self.watches.items()):
            progress = self._progress(index)
            if progress is not None and not watch(progress):
                self.cancel(index)
        return done

    def _progress(self, index: int) -> CoreProgress | None:
        last, score = c_int32(), c_float()
        length = engine().heedful_decoder_progress(self.handle, index, None, 0, byref(last), byref(score))
        # None while it waits.
        return CoreProgress(index, length, (last.value, score.value), self) if length >= 0 else None

    def _take_done(self) -> list[Decoded]:
        found = []
        index, sizes = c_int64(), (c_int32 * 3)()
        while engine().heedful_decoder_done(self.handle, byref(index), sizes):
            hypotheses, num_tokens, num_scores = sizes
            heads, totals = (c_int32 * (3 * hypotheses))(), (c_double * hypotheses)()
            tokens, scores = (c_int32 * num_tokens)(), (c_float * num_scores)()
            engine().heedful_decoder_take(self.handle, heads, totals, tokens, scores)
            found.append(Decoded(index.value, _hypotheses(heads[:], totals[:], tokens[:], scores[:])))
        return found


def _hypotheses(heads: list[int], totals: list[float], tokens: list[int], scores: list[float]) -> list[Hypothesis]:
    found = []
    first_token = first_score = 0
    for number, total in enumerate(totals):
        length, scored, finished = heads[3 * number : 3 * number + 3]
        own_tokens = tokens[first_token : first_token + length]
        own_scores = scores[first_score : first_score + scored]
        found.append(Hypothesis(own_tokens, own_scores, total, bool(finished)))
        first_token, first_score = first_token + length, first_score + scored
    return found
