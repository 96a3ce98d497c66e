"""What is planned: a preset, a model folder or a settings file, with every size that a plan needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.config import nearest, read_toml
from heedful.errors import UserError
from heedful.model_folder import check_model_folder
from heedful.presets import PRESETS
from heedful.training.config import TrainingConfig
from heedful.training.resolve import fill_in

# The vocabulary of the paper's models (5.1), and a usual one for other texts; the classes of ImageNet.
PAPERS_VOCABULARY, USUAL_VOCABULARY, USUAL_CLASSES = 37_000, 32_000, 1_000
# The tokens of a step, if the settings leave them to the data.
USUAL_STEP = 500_000
PLANNED_FAMILIES = ("encoder_decoder", "decoder_only", "encoder_only", "vision")


@dataclass(frozen=True)
class Subject:
    """A model and its training, with what had to be assumed about them, in words."""

    name: str
    family: str
    model: Any
    training: TrainingConfig
    assumed: tuple[str, ...] = ()

    @property
    def step_tokens(self) -> int:
        """The tokens of a step, on both sides."""
        tokens = self.training.batches.tokens_per_step
        assert tokens is not None
        return tokens

    @property
    def precision(self) -> str:
        """The precision: bf16, which every GPU of today has, unless the settings say otherwise."""
        return self.training.machine.precision or "bf16"


def subject_of(text: str) -> Subject:
    """The subject that a name stands for: the name of a folder, a settings file or a preset."""
    path = Path(text)
    if path.is_dir():
        config = check_model_folder(path)
        return completed(Subject(path.resolve().name, config.family, config.model, TrainingConfig()))
    if path.suffix == ".toml" or path.is_file():
        return _of_settings(path)
    if text not in PRESETS:
        raise UserError(f"there is no preset, model folder or settings file {text!r}: {nearest(text, list(PRESETS))}")
    preset = PRESETS[text]()
    return completed(Subject(text, preset.family, preset.model, preset.training))


def _of_settings(path: Path) -> Subject:
    settings = read_toml(path)
    name = settings.get("preset")
    if not isinstance(name, str) or name not in PRESETS:
        hint = "add preset = NAME" if name is None else nearest(name, list(PRESETS))
        raise UserError(f"{path} names no preset of the model that is planned: {hint}")
    run = fill_in(name, {table: settings.get(table, {}) for table in ("model", "training")})
    return completed(Subject(path.stem, run.family, run.model, run.training))


def completed(subject: Subject) -> Subject:
    """The subject with the sizes that its data would settle, and with these stated as assumptions."""
    if subject.family not in PLANNED_FAMILIES:
        raise UserError(
            f"{subject.name} is of the family {subject.family!r}, of which there is no plan: "
            f"choose a model of one of {', '.join(PLANNED_FAMILIES)}"
        )
    model, assumed = subject.model, list(subject.assumed)
    if getattr(model, "vocabulary_size", 0) is None:
        size = PAPERS_VOCABULARY if subject.family == "encoder_decoder" else USUAL_VOCABULARY
        model = replace(model, vocabulary_size=size)
        assumed.append(f"a vocabulary of {size:,} tokens")
    if getattr(model, "num_classes", 0) is None:
        model = replace(model, num_classes=USUAL_CLASSES)
        assumed.append(f"{USUAL_CLASSES:,} classes")
    if getattr(model, "head", "masked") == "none":
        model = replace(model, head="masked")
        assumed.append("a head that guesses masked tokens")
    training = subject.training
    if training.batches.tokens_per_step is None:
        training = replace(training, batches=replace(training.batches, tokens_per_step=USUAL_STEP))
        assumed.append(f"steps of {USUAL_STEP:,} tokens")
    return replace(subject, model=model, training=training, assumed=tuple(assumed))
