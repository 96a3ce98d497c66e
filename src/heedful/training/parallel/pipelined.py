"""A model whose layers lie in several processes, one stage after the other, as it is trained, saved and restored."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.machine.memory import out_of_memory
from heedful.models.decoder_only import DecoderOnly
from heedful.tasks.language_modeling.task import LanguageBatch
from heedful.tasks.task import Task
from heedful.training.averaging import MovingAverage
from heedful.training.config import TrainingConfig
from heedful.training.gradients import start_worker
from heedful.training.optimizer import make_optimizer
from heedful.training.parallel.blocks import prepare_blocks
from heedful.training.parallel.drawing import Drawing
from heedful.training.parallel.lending import Lender
from heedful.training.parallel.pieces import Share, whole_share
from heedful.training.parallel.pipeline import Grid, PipelineGradients, templates, whole_of_stages
from heedful.training.parallel.spread_checkpoint import writing_group
from heedful.training.parallel.spread_model import SpreadModel
from heedful.training.parallel.stages import Stage, keep_stage
from heedful.training.parallel.world import World
from heedful.training.parts import Parts


class Pipelined(SpreadModel):
    """One stage of a decoder-only model, with its gradients, optimizer and average; other processes have the others."""

    in_step = False
    gradients: PipelineGradients

    def __init__(
        self,
        model: nn.Module,
        task: Task[LanguageBatch],
        config: TrainingConfig,
        world: World,
        drawing: Drawing | None = None,
    ) -> None:
        assert isinstance(model, DecoderOnly)
        self.config, self.world = config, world
        parallel, machine = config.parallel, config.machine
        self.places, stages = parallel.replicate or 1, parallel.pipeline or 1
        self.grid = Grid(self.places, stages, parallel.timeout_seconds)
        self.place = self.grid.copy
        self.shapes = templates(model)
        drawn = drawing.model().to(machine.device) if drawing else copy.deepcopy(model)
        assert isinstance(drawn, DecoderOnly)
        self.model = drawn
        self.owners = keep_stage(drawn, self.grid.stage, stages)
        if drawing:
            with torch.no_grad():
                for parameter in drawn.parameters():
                    parameter.copy_(drawing.value(parameter))
        prepare_blocks(self.model, parallel)
        self.stage = Stage(drawn, task.loss, self.grid.stage, stages, machine.precision == "bf16")
        self.lender = Lender(model, world)
        self.gradients = PipelineGradients(self.stage, self.owners, self.grid)
        self.optimizer = make_optimizer(self.model, config.optimizer)
        self.average = MovingAverage(self.model, config.ema_decay) if config.ema_decay else None
        assert machine.workers is not None and machine.threads is not None
        threads = machine.threads * max(1, machine.workers // world.size)  # all stages compute at the same time
        self.pool = ThreadPoolExecutor(1, initializer=start_worker, initargs=(threads,))
        self.writers = writing_group(parallel.timeout_seconds)

    def compute(self, parts: Parts[LanguageBatch], targets: int, seed: int, on_split: Callable[[], None]) -> float:
        """Leave the gradient of the mean loss per target token, of this many, in the parameters; return that mean."""
        own = list(zip(parts.numbers, parts.batches, strict=True))
        self.stage.train()
        try:
            with self.world.naming_failures():
                return float(self.pool.submit(self.gradients.compute, own, targets, seed).result())
        except (RuntimeError, MemoryError) as error:
            cause = error.__cause__  # torch itself says only where it was
            if not any(isinstance(each, Exception) and out_of_memory(each) for each in (error, cause)):
                raise
            raise UserError(
                "a batch did not fit into memory, which a model in stages cannot mend by itself: set a smaller "
                "training.batches.tokens_per_batch in another folder"
            ) from None

    def whole(self, tensors: Mapping[str, Tensor], names: Sequence[str]) -> Iterator[tuple[str, Tensor]]:
        """Some whole tensors, one at a time, in all processes together."""
        return whole_of_stages(tensors, {name: self.shapes[name] for name in names}, self.owners, self.grid)

    def shares(self, tensors: Mapping[str, Tensor]) -> dict[str, Share]:
        """What this stage has of the tensors; its copies have the same."""
        return {name: whole_share(tensor.detach()) for name, tensor in tensors.items()}
