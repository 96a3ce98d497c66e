"""What is wrong with a training run, in words, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from heedful.inspection.run.run_record import Row, RunRecord

# Before this much of a run, a model that always answers the same, or ignores its input, is simply young.
FEWEST_STEPS = 50
FEWEST_VALIDATIONS = 3
# Fewer held-out answers may be alike by chance.
FEWEST_ANSWERS = 10
CONSTANT_SHARE = 0.9
# Where this share of the right answers are alike, the data is to blame.
REPEATED_SHARE = 0.8
# The share of the loss that the right input must save; labels of texts and images may be hard to predict.
LEAST_SOURCE_GAIN, LEAST_GAIN = 0.1, 0.03
# A run may lose this share of what it had learned; a loss of fewer nats than this may be chance.
LARGEST_RELAPSE, LEAST_RELAPSE = 0.3, 0.1
# This many standard errors of a mean may be chance too.
CHANCE = 5
# The share by which a run must have reduced its first loss.
LEAST_LEARNED = 0.02
# The share and the nats by which a held-out loss must have risen: where nearly all answers are right, both are small.
OVERFITTED, LEAST_RISE = 1.1, 0.05
# A run of this many steps has had time to learn to use its input; so has one that has seen its data this often, and
# whose training loss has settled, which means that it fell by less than this share in the last third. In a short run
# the loss also settles because the learning rate has decayed.
LONG_RUN = 1000
FEWEST_EPOCHS = 3
STILL_FALLING = 0.02
TOO_SHORT = "too short to tell"

INPUTS = {"encoder_decoder": "source", "recurrent": "source", "vision": "image"}
NEXT_TOKEN = ("decoder_only", "xlnet")


@dataclass(frozen=True)
class Finding:
    """Something that a user should know about a run: a fault, or else advice; what was seen, and what to do."""

    name: str
    fault: bool
    title: str
    evidence: str
    advice: str

    def __str__(self) -> str:
        return f"{self.title}. {self.evidence} {self.advice}"


Rule = Callable[[RunRecord], Finding | None]


def diagnose(run: RunRecord) -> list[Finding]:
    """The findings on a run, causes before their consequences; none if it is healthy."""
    for rules in _groups_of_rules(run):
        found = [each for each in (rule(run) for rule in rules) if each]
        if found or not judgeable(run):
            return found
    return []


def _groups_of_rules(run: RunRecord) -> list[list[Rule]]:
    """Rules that are tried together, each group only if those before it found nothing."""
    symptoms: list[Rule] = [_input_ignored, _constant_output]
    # A target's language can be learned from targets alone, so a run that has not even done that says nothing about its
    # files; labels that belong to other inputs cannot be learned at all.
    learning = [[_nothing_learned], symptoms] if _input(run) == "source" else [[_nothing_learned, *symptoms]]
    return [[_divergence], [_constant_data], *learning, [_overfitting]]


def judgeable(run: RunRecord) -> bool:
    """Whether a run has gone on long enough to be called healthy."""
    return len(run.steps) >= FEWEST_STEPS and (run.finished or len(run.validations) >= FEWEST_VALIDATIONS)


def verdict(run: RunRecord) -> str:
    """A few words for a run: healthy, too short to judge, or the names of its faults."""
    found = diagnose(run)
    faults = [finding.name for finding in found if finding.fault]
    tells = judgeable(run) and all(finding.name != TOO_SHORT for finding in found)
    return ", ".join(faults) or ("healthy" if tells else "too short to judge")


def checks(run: RunRecord) -> list[str]:
    """What a run can be examined for; runs of older versions recorded less."""
    best = run.best or {}
    names = ["divergence", "a loss that does not fall", "overfitting"]
    names += ["constant output"] if best.get("answers") else []
    return names + ([f"an ignored {_input(run)}"] if best.get("input_gain") is not None else [])


def _input(run: RunRecord) -> str:
    return INPUTS.get(run.family, "text")


class _TrainingLoss:
    """The training loss at the first steps, and its means over parts of the run that are long enough to be steady."""

    def __init__(self, run: RunRecord) -> None:
        losses = np.array([row["loss"] for row in run.steps])
        tokens = np.array([row["target_tokens"] for row in run.steps], float)
        self.first = float(np.average(losses[:3], weights=tokens[:3]))
        size = max(10, len(losses) // 20)
        # Aligned with the end; what is left out at the start is too early to matter.
        starts = np.arange(len(losses) % size, len(losses), size)
        self.means = np.add.reduceat(losses * tokens, starts) / np.add.reduceat(tokens, starts)
        self.steps = [run.steps[start]["step"] for start in starts]
        self.best, self.now = float(self.means.min()), float(self.means[-1])
        at_best = losses[starts[self.means.argmin()] :][:size]
        self.noise = float(at_best.std()) / math.sqrt(size)

    def at(self, step: int) -> float:
        """The mean of the part that a step belongs to."""
        return float(self.means[max(0, int(np.searchsorted(self.steps, step, side="right")) - 1)])


def _divergence(run: RunRecord) -> Finding | None:
    advice = (
        "Lower training.schedule.learning_rate (a third of it is a good next try) or warm up for longer, and start "
        "again in another folder."
    )
    if run.best:
        advice += f" This one holds the weights of step {run.best['step']:,}, the best from before."
    if run.failure:
        evidence = f"The run was stopped at step {run.failure['step']:,}: {run.failure['reason']}."
        return Finding("divergence", True, "Training diverged", evidence, advice)
    if len(run.steps) < FEWEST_STEPS:
        return None
    loss = _TrainingLoss(run)
    chance = CHANCE * loss.noise  # with few, small steps, means go up and down by themselves
    if loss.now - loss.best <= max(LARGEST_RELAPSE * (loss.first - loss.best), 0.2 * loss.first, LEAST_RELAPSE, chance):
        return None
    lowest = loss.steps[int(loss.means.argmin())]
    evidence = (
        f"The training loss was {loss.first:.2f} at first and {loss.best:.2f} about step {lowest:,}, "
        f"but is now {loss.now:.2f}: much of what it had learned is lost."
    )
    return Finding("divergence", True, "Training diverged", evidence, advice)


def _nothing_learned(run: RunRecord) -> Finding | None:
    loss = _TrainingLoss(run)
    if run.starts_from_model or loss.best < (1 - LEAST_LEARNED) * loss.first:
        return None
    return Finding(
        "nothing learned",
        True,
        "Nothing was learned",
        f"After {len(run.steps):,} steps the training loss is {loss.now:.3f}; it began at {loss.first:.3f}.",
        "Raise training.schedule.learning_rate, or leave it to the preset. If it is neither very small nor very "
        "large, look at the data: does each answer in the file belong to its input?",
    )


def _constant_data(run: RunRecord) -> Finding | None:
    """Always the same answer, because the data teaches it."""
    answers = _constant_answers(run)
    if not answers or answers["expected_share"] < REPEATED_SHARE:
        return None
    advice = "The data teaches this: leave out repeated answers, or add examples with other answers."
    return _always_the_same(run, answers, advice)


def _constant_output(run: RunRecord) -> Finding | None:
    """Always the same answer, though others are right."""
    answers = _constant_answers(run)
    advice = (
        "It has learned no more than what is common: train for longer, or with a lower training.schedule.learning_rate "
        "or a longer warm-up."
    )
    return _always_the_same(run, answers, advice) if answers else None


def _constant_answers(run: RunRecord) -> Row | None:
    answers: Row | None = run.best and run.best.get("answers")
    if not answers or answers["count"] < FEWEST_ANSWERS or answers["share"] < CONSTANT_SHARE:
        return None
    # Where most of the right answers are alike, a few different ones given show that the model tells them apart.
    return answers if answers["share"] == 1 or answers["expected_share"] < 0.5 else None


def _always_the_same(run: RunRecord, answers: Row, advice: str) -> Finding:
    # A language model answers with a token at each place of the held-out text.
    what, nothing = ("next token", "the end of a document") if run.family in NEXT_TOKEN else ("answer", "empty")
    named = _named(answers["commonest"]) or nothing
    evidence = (
        f"Of {answers['count']:,} held-out {what}s, {answers['share']:.0%} are {named}; "
        f"of the right {what}s, the commonest makes up {answers['expected_share']:.0%}."
    )
    return Finding("constant output", True, f"The model always gives the same {what}", evidence, advice)


def _named(answer: str) -> str:
    """An answer in words, if it cannot be seen; nothing if there is none."""
    if answer.strip():
        return f"“{_shortened(answer)}”"
    return {"": "", " ": "a space", "\n": "a line break", "\t": "a tab"}.get(answer, "white space")


def _input_ignored(run: RunRecord) -> Finding | None:
    best = run.best or {}
    gain = best.get("input_gain")
    what = _input(run)
    least = LEAST_SOURCE_GAIN if what == "source" else LEAST_GAIN
    if gain is None or gain >= least * (best["loss"] + gain):
        return None
    evidence = (
        f"The held-out loss is {best['loss']:.2f} with the right {what}s, and {best['loss'] + gain:.2f} with {what}s "
        f"that belong to other examples."
    )
    # A gain too large for chance shows that the files belong together; without one, only time can tell.
    if gain >= LEAST_GAIN * (best["loss"] + gain) or not _has_come_to_rest(run):
        title = f"The run is too short to tell whether the {what} is used"
        return Finding(TOO_SHORT, False, title, evidence, "Train for longer.")
    if what == "source":
        title = "The source is ignored: the files may be misaligned"
        advice = (
            "Check that each line of the target file is the translation of the same line of the source file; the "
            "held-out examples show pairs as they were read. If they belong together, train for longer, or with a "
            "lower training.schedule.learning_rate."
        )
    else:
        title = f"The {what} is ignored: the labels may not belong to the {what}s"
        advice = f"Check that each label is that of its {what}. If they belong together, train for longer."
    return Finding("source ignored" if what == "source" else f"{what} ignored", True, title, evidence, advice)


def _has_come_to_rest(run: RunRecord) -> bool:
    """Whether a run has settled: more of the same training would not soon change what it has learned."""
    if len(run.steps) >= LONG_RUN:
        return True
    means = _TrainingLoss(run).means
    return _epochs(run) >= FEWEST_EPOCHS and means[2 * len(means) // 3] - means[-1] < STILL_FALLING * means[-1]


def _epochs(run: RunRecord) -> float:
    """How often a run has seen its data, judging by the number of steps that the first pass took."""
    epochs = [row.get("epoch", 0) for row in run.steps]
    return len(epochs) / epochs.count(epochs[0])


def _overfitting(run: RunRecord) -> Finding | None:
    best, last = run.best, run.validations[-1] if run.validations else None
    lowest = min((row for row in run.validations if math.isfinite(row["loss"])), key=_loss, default=None)
    if not best or not last or not lowest:
        return None
    if last["loss"] <= max(OVERFITTED * lowest["loss"], lowest["loss"] + LEAST_RISE):
        return None
    loss = _TrainingLoss(run)
    if loss.now >= loss.at(lowest["step"]):
        return None
    return Finding(
        "overfitting",
        False,
        "The model is memorising its training data",
        f"The held-out loss was lowest ({lowest['loss']:.3f}) at step {lowest['step']:,} and is {last['loss']:.3f} at "
        f"the end, while the training loss went on falling.",
        # How they were chosen is said beside this: in the last line of a run, and in the page's table.
        f"The folder holds the weights of step {best['step']:,}. For better ones: more data, more dropout, a smaller "
        "model, or a shorter run, whose learning rate decays earlier.",
    )


def _loss(row: Row) -> float:
    return float(row["loss"])


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
