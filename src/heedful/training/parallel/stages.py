"""A decoder-only model in stages, some of its blocks in each, one after the other: cut from outside."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.layers.dropout import dropout_after, masks_so_far, seeded_dropout
from heedful.layers.stacks import SelfStack
from heedful.models.decoder_only import DecoderOnly
from heedful.tasks.language_modeling.task import LanguageBatch
from heedful.training.gradients import part_seed
from heedful.training.step import Loss

Owners = dict[str, tuple[int, ...]]


def stage_of_layers(layers: int, stages: int) -> list[int]:
    """The stage of each layer; if they do not divide evenly, the first stages have one more."""
    if layers < stages:
        raise UserError(
            f"training.parallel.pipeline is {stages}, but the model has {layers} layer{'s' * (layers != 1)}, "
            "and every stage needs one"
        )
    few, more = divmod(layers, stages)
    return [stage for stage in range(stages) for _ in range(few + (stage < more))]


def owners_of(model: DecoderOnly, stages: int) -> Owners:
    """The stages that use each parameter of a whole model: both ends use a tied embedding, all use a shared bias."""
    layers, last = stage_of_layers(len(model.blocks), stages), stages - 1
    # What is added to embeddings is needed once; what rotates queries and keys or biases scores, in every block.
    in_blocks = any(model.positions.uses(hook) for hook in ("rotate", "bias"))
    everywhere = tuple(range(stages))
    found: Owners = {}
    for name, parameter in model.named_parameters():
        part, _, rest = name.partition(".")
        if part == "blocks":
            found[name] = (layers[int(rest.partition(".")[0])],)
        elif part == "positions":
            found[name] = everywhere if in_blocks else (0,)
        elif part == "embedding":
            found[name] = (0, last) if parameter is model.output.weight else (0,)
        else:
            found[name] = (last,)
    return found


class Handed(nn.Module):
    """Stands in for the embedding of a whole model, and gives what the previous stage has computed.

    In a model whose output layer has the embedding's weights, these are here too, under the name they have there.
    """

    def __init__(self, table: nn.Embedding | None) -> None:
        super().__init__()
        self.table = table
        self.x_BTD: Tensor | None = None

    def forward(self, ids_BT: Tensor, positions: Tensor) -> Tensor:
        """The activations of the part being computed."""
        assert self.x_BTD is not None
        x_BTD, self.x_BTD = self.x_BTD, None
        return x_BTD


def keep_stage(model: DecoderOnly, stage: int, stages: int) -> Owners:
    """Reduce a model, in place, to what one stage uses; parameters keep their names. Return the owners of all."""
    owners = owners_of(model, stages)
    layers = stage_of_layers(len(model.blocks), stages)
    blocks = SelfStack()
    for number, block in enumerate(model.blocks):
        if layers[number] == stage:
            blocks.add_module(str(number), block)
    model.blocks = blocks
    if stage > 0:
        tied = stage == stages - 1 and model.config.tied_output
        model.embedding = Handed(model.embedding.table if tied else None)  # type: ignore[assignment]
        for name, _ in list(model.positions.named_parameters(recurse=False)):
            if stage not in owners[f"positions.{name}"]:
                model.positions.register_parameter(name, None)
    if stage < stages - 1:
        model.norm = nn.Identity()
        model.output = nn.Identity()  # type: ignore[assignment]
    return owners


@dataclass(frozen=True)
class StageWork:
    """The parts of a step, with their numbers, and what their loss is divided by; stages pass on `rows` of each."""

    parts: Sequence[tuple[int, LanguageBatch]]
    targets: int
    seed: int
    rows: int


class Stage(nn.Module):
    """What torch's schedule calls: the previous stage's activations in, those for the next stage out, or the loss.

    Activations go from process to process in one shape. A part with fewer rows is padded on the way, but computed
    without the padding. The state of its dropout masks goes with it, so that the stages together drop what one process
    would drop.
    """

    def __init__(self, model: DecoderOnly, loss: Loss[LanguageBatch], stage: int, stages: int, bf16: bool) -> None:
        super().__init__()
        self.model, self.loss, self.bf16 = model, loss, bf16
        self.stage, self.is_last = stage, stage == stages - 1
        self.work = StageWork((), 1, 0, 0)
        self.total = 0.0

    def forward(self, *handed: Tensor, turn: Tensor) -> tuple[Tensor, ...] | Tensor:
        """Compute the part whose turn it is."""
        number, batch = self.work.parts[int(turn)]
        rows = len(batch.ids_BT)
        with self._masks(number, handed), torch.autocast(batch.ids_BT.device.type, torch.bfloat16, enabled=self.bf16):
            if handed:
                self.model.embedding.x_BTD = handed[0][:rows]
            if self.is_last:
                loss, plain = self.loss(self.model, batch)
                self.total += float(plain)
                return (loss / self.work.targets).view(1)  # torch concatenates the losses of the parts
            x_BTD = self.model.hidden(batch.ids_BT, batch.documents_BT)
            padded_BTD = F.pad(x_BTD, (0, 0, 0, 0, 0, self.work.rows - rows)).contiguous()
            return (padded_BTD, masks_so_far()) if padded_BTD.device.type == "cpu" else (padded_BTD,)

    def shapes(self, length: int) -> list[Tensor]:
        """What goes from stage to stage, without memory, for sequences of a length."""
        parameter = next(self.model.parameters())
        shape = (self.work.rows, length, self.model.config.width)
        x_BTD = torch.empty(shape, dtype=parameter.dtype, device="meta", requires_grad=True)
        state = [torch.Generator().get_state().to("meta")] if parameter.device.type == "cpu" else []
        return [x_BTD, *state]

    def _masks(self, number: int, handed: tuple[Tensor, ...]) -> AbstractContextManager[None]:
        if len(handed) > 1:
            return dropout_after(handed[1])
        # Except on a CPU, torch's own generator draws, in each stage separately.
        seed = part_seed(self.work.seed, number) + self.stage * 2**32
        return seeded_dropout(seed, next(self.model.parameters()).device)
