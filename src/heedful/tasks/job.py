"""What a training run asks of a job, and of the data that the job has prepared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from heedful.model_folder import ModelConfig
from heedful.prepared.folder import Expected
from heedful.prepared.progress import OnProgress
from heedful.tasks.task import LearningSettings, Task
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Choice:
    """One choice of a run, to be shown: what, which, and why."""

    name: str
    value: str
    reason: str


class PreparedJob(Protocol):
    """Data that is ready to learn from."""

    @property
    def key(self) -> str:
        """Changes with the contents of the files, and with how they were prepared."""

    @property
    def messages(self) -> Sequence[str]:
        """What was changed or left out, in words."""

    @property
    def num_tokens(self) -> int:
        """Tokens of one pass over the training data."""

    @property
    def tokenizer(self) -> Tokenizer | None:
        """What turns text into tokens, if the job has text."""

    def preset(self, family: str, device: torch.device) -> str:
        """A size that suits the data and the machine."""

    def complete(self, settings: Any) -> Any:
        """The model's settings, completed from the data: the vocabulary's size, the number of classes."""

    def choices(self) -> list[Choice]:
        """What is known about the data."""

    def task(self, model: Any, learning: LearningSettings) -> Task[Any]:
        """What the training loop works on."""

    def model_config(self, family: str, settings: Any) -> ModelConfig:
        """What the model folder says about the model."""

    def card(self, config: ModelConfig, name: str, scores: dict[str, float]) -> str:
        """A README.md for the model folder."""


class Job(Protocol):
    """Something to learn, from files that a user has named; a dataclass, which is saved with the run."""

    @property
    def files(self) -> Sequence[str]:
        """The fields that name files or folders: a run is known by the contents of these, not by their names."""

    @property
    def read_from_names(self) -> Sequence[str]:
        """The fields that are read from the names of files where they are not given."""

    @property
    def start_folder(self) -> str | None:
        """The model folder that the run starts from, if there is one."""

    @property
    def families(self) -> Sequence[str]:
        """The families of models that can learn it, the usual one first."""

    def check(self) -> None:
        """Raise a UserError for files that are missing or do not go together."""

    def base_settings(self) -> dict[str, Any]:
        """The job's own settings: they override the preset's, and the user's override them."""

    def prepare(
        self, folder: Path, model_settings: dict[str, Any], progress: OnProgress, expected: Expected | None
    ) -> PreparedJob:
        """Read the files, or open what an earlier run made of them; refuse data other than expected."""

    def start(self, model: nn.Module) -> None:
        """Give a fresh model the weights that the run is to start from, if they are not to be random."""
