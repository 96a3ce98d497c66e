"""A model whose layers lie in several processes, one stage after the other, as it is trained, saved and restored."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.machine.memory import out_of_memory
from heedful.models.decoder_only import DecoderOnly
from heedful.models.weights_file import load_parameters
from heedful.tasks.language_modeling.task import LanguageBatch
from heedful.tasks.task import Task
from heedful.training.averaging import MovingAverage, mean_of_checkpoints
from heedful.training.checkpoint import check_checkpoint
from heedful.training.config import TrainingConfig
from heedful.training.gradients import start_worker
from heedful.training.optimizer import make_optimizer, optimizer_tensors
from heedful.training.parallel.blocks import prepare_blocks
from heedful.training.parallel.drawing import Drawing
from heedful.training.parallel.pieces import Share, whole_share
from heedful.training.parallel.pipeline import Grid, PipelineGradients, templates, whole_of_stages
from heedful.training.parallel.spread_checkpoint import read_shares, save_shares, writing_group
from heedful.training.parallel.stages import Stage, keep_stage
from heedful.training.parallel.world import World
from heedful.training.parts import Parts
from heedful.training.recovery import check_contents
from heedful.training.replica import in_memory
from heedful.training.run_state import RunState


class Pipelined:
    """One stage of a decoder-only model, with its gradients, optimizer and average; other processes have the others.

    The task's own model stays whole in the leading process, and is given the weights when they are measured.
    """

    in_step = False

    def __init__(
        self,
        model: nn.Module,
        task: Task[LanguageBatch],
        config: TrainingConfig,
        world: World,
        drawing: Drawing | None = None,
    ) -> None:
        assert isinstance(model, DecoderOnly)
        self.whole, self.config, self.world = model, config, world
        parallel, machine = config.parallel, config.machine
        self.places, stages = parallel.replicate or 1, parallel.pipeline or 1
        self.grid = Grid(self.places, stages, parallel.timeout_seconds)
        self.place = self.grid.copy
        self.shapes = templates(model)
        drawn = drawing.model().to(machine.device) if drawing else copy.deepcopy(model)
        assert isinstance(drawn, DecoderOnly)
        self.model = drawn
        self.owners = keep_stage(self.model, self.grid.stage, stages)
        if drawing:
            with torch.no_grad():
                for parameter in self.model.parameters():
                    parameter.copy_(drawing.value(parameter))
        prepare_blocks(self.model, parallel)
        self.stage = Stage(self.model, task.loss, self.grid.stage, stages, machine.precision == "bf16")
        if not world.leads:
            for parameter in model.parameters():
                parameter.data = parameter.data.new_empty(0)
        self.gradients = PipelineGradients(self.stage, self.owners, self.grid)
        self.optimizer = make_optimizer(self.model, config.optimizer)
        self.average = MovingAverage(self.model, config.ema_decay) if config.ema_decay else None
        assert machine.workers is not None and machine.threads is not None
        threads = machine.threads * max(1, machine.workers // world.size)  # all stages compute at the same time
        self.pool = ThreadPoolExecutor(1, initializer=start_worker, initargs=(threads,))
        self.writers = writing_group(parallel.timeout_seconds)
        self._holds_mean = False

    def compute(self, parts: Parts[LanguageBatch], targets: int, seed: int, on_split: Callable[[], None]) -> float:
        """Leave the gradient of the mean loss per target token, of so many, in the parameters; give that mean."""
        own = list(zip(parts.numbers, parts.batches, strict=True))
        self.stage.train()
        try:
            with self.world.naming_failures():
                return float(self.pool.submit(self.gradients.compute, own, targets, seed).result())
        except (RuntimeError, MemoryError) as error:
            cause = error.__cause__  # torch says where it was, and no more
            if not any(isinstance(each, Exception) and out_of_memory(each) for each in (error, cause)):
                raise
            raise UserError(
                "a batch did not fit into memory, which a model in stages cannot mend by itself: set a smaller "
                "training.batches.tokens_per_batch in another folder"
            ) from None

    def clip(self) -> float:
        """Scale the gradients down, if so set; give the norm they had."""
        with self.world.naming_failures():
            return float(self.gradients.clip(self.config.optimizer.clip_norm))

    def update(self, step: int, rate: float) -> None:
        """Take the step."""
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        self.optimizer.step()
        if self.average:
            self.average.update(step)

    @contextmanager
    def measured(self, averaged: bool = True) -> Iterator[None]:
        """The task's model, in the leading process, has the weights that are measured and kept."""
        if not self._holds_mean:
            kept = self.average.tensors if self.average and averaged else dict(self.model.named_parameters())
            own = dict(self.whole.named_parameters())
            with torch.no_grad():
                for name, whole in self._whole(kept, self.shapes):
                    if self.world.leads:
                        own[name].copy_(whole)
        yield

    def _whole(self, tensors: Mapping[str, Tensor], shapes: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        with self.world.naming_failures():
            yield from whole_of_stages(tensors, shapes, self.owners, self.grid)

    @contextmanager
    def mean_of(self, checkpoints: list[Path]) -> Iterator[None]:
        """The task's model has the mean of the weights of checkpoints inside the block."""
        if self.world.leads:
            load_parameters(self.whole, mean_of_checkpoints(checkpoints))
        self._holds_mean = True
        yield
        self._holds_mean = False

    def checkpoint(self, folder: Path, state: RunState, *, copied: bool) -> Callable[[], object]:
        """What writes a checkpoint of the model as it is now: each stage has its own part of it."""
        shares = self._shares()
        if copied:
            shares = {name: replace(share, local=in_memory(share.local)) for name, share in shares.items()}
        step, content = state.position.step, state.to_dict()

        def write() -> None:
            with self.world.naming_failures():
                save_shares(folder, step, shares, content, self.writers)

        return write

    def _shares(self) -> dict[str, Share]:
        """What this stage has of all that a checkpoint holds, by group and name; copies of it have the same."""
        groups: dict[str, Mapping[str, Tensor]] = {"model": dict(self.model.named_parameters())}
        groups["optimizer"] = optimizer_tensors(self.model, self.optimizer)
        if self.average:
            groups["average"] = self.average.tensors
        return {
            f"{group}/{name}": whole_share(tensor.detach())
            for group, tensors in groups.items()
            for name, tensor in tensors.items()
        }

    def restore(self, path: Path) -> RunState:
        """Take over a checkpoint, and give its state; a DamagedCheckpointError if it cannot be used."""
        # The leading process comes first, and looks at the files of all.
        stored, content = check_checkpoint(path, checksums=self.world.leads)
        shapes = {name: each.shape for name, each in stored.items()}
        state = check_contents(path, content, shapes, self.shapes, self.average is not None)
        for name, parameter in self.model.named_parameters():
            if f"optimizer/{name}/step" in stored:
                moments = {key: torch.zeros_like(parameter) for key in ("exp_avg", "exp_avg_sq")}
                self.optimizer.state[parameter] = {"step": torch.zeros(()), **moments}
        with torch.no_grad():
            read_shares(path, stored, self._shares())
        return state
