"""Small models of every family, batches for them, and steps of training in one process and in several."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.layers.dropout import seeded_dropout
from heedful.models.decoder_only import DecoderOnly
from heedful.models.families import FAMILIES
from heedful.settings.attention import AttentionConfig
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.tasks.cross_entropy import output_cross_entropy
from heedful.tasks.language_modeling.task import LanguageBatch, language_loss
from heedful.tasks.translation.task import collate, translation_loss
from heedful.training.config import OptimizerConfig, ParallelConfig
from heedful.training.gradients import part_seed
from heedful.training.optimizer import clip_gradients, make_optimizer
from heedful.training.parallel.apply import make_mesh, parallelize
from heedful.training.parallel.blocks import prepare_blocks
from heedful.training.parallel.pieces import whole_tensors
from heedful.training.parallel.pipeline import Grid, PipelineGradients, templates, whole_of_stages
from heedful.training.parallel.sharded_gradients import ShardedGradients
from heedful.training.parallel.stages import Stage, keep_stage
from heedful.training.parallel.world import World
from heedful.training.step import TrainingStep

PARTS, STEPS, VOCABULARY = 4, 3, 53
SMOOTHING = 0.1


def stack(**changes: Any) -> StackConfig:
    attention = AttentionConfig(num_heads=4, key_width=7, value_width=5, dropout=0.1)
    network = FeedForwardConfig(inner_width=44, activation="gelu", dropout=0.1)
    return StackConfig(num_layers=2, norm="pre", dropout=0.1, attention=attention, feed_forward=network, **changes)


@dataclass(frozen=True)
class Case:
    """A model, its loss, and its batches."""

    family: str
    config: Any
    loss: Callable[[Any, Any], tuple[Tensor, Tensor]]
    batch: Callable[[np.random.Generator], Any]


def pairs(random: np.random.Generator) -> Any:
    lengths = random.integers(3, 11, (2, 3))
    sources, targets = ([random.integers(5, VOCABULARY, int(each)) for each in row] for row in lengths)
    return collate(sources, targets)


def windows(random: np.random.Generator) -> LanguageBatch:
    ids = torch.from_numpy(random.integers(5, VOCABULARY, (3, 12)))
    return LanguageBatch(ids[:, :-1], ids[:, 1:], None)


def documents(random: np.random.Generator) -> LanguageBatch:
    """More windows in some parts than in others, each of several documents."""
    ids = torch.from_numpy(random.integers(5, VOCABULARY, (int(random.integers(1, 6)), 12)))
    return LanguageBatch(ids[:, :-1], ids[:, 1:], (ids[:, :-1] < 15).cumsum(1))


@dataclass(frozen=True)
class Images:
    pixels: Tensor
    classes_B: Tensor

    @property
    def num_targets(self) -> int:
        return len(self.classes_B)


def images(random: np.random.Generator) -> Images:
    pixels = torch.from_numpy(random.standard_normal((3, 3, 6, 9)))
    return Images(pixels, torch.from_numpy(random.integers(0, 5, 3)))


def image_loss(model: Any, batch: Images) -> tuple[Tensor, Tensor]:
    pixels = batch.pixels.to(next(model.parameters()).dtype)
    return output_cross_entropy(model.output, model.hidden(pixels), batch.classes_B, SMOOTHING)


def masked_loss(model: Any, batch: LanguageBatch) -> tuple[Tensor, Tensor]:
    hidden = model.transform(model.hidden(batch.ids_BT)).flatten(0, 1)
    return output_cross_entropy(model.output, hidden, batch.labels_BT.flatten(), SMOOTHING)


def _translation(model: Any, batch: Any) -> tuple[Tensor, Tensor]:
    return translation_loss(model, batch, SMOOTHING)


def _language(model: Any, batch: Any) -> tuple[Tensor, Tensor]:
    return language_loss(model, batch, SMOOTHING)


gpt = DecoderOnlyConfig(vocabulary_size=VOCABULARY, width=20, max_length=17, stack=stack())
swiglu = replace(gpt.stack, feed_forward=FeedForwardConfig(inner_width=44, activation="swiglu", dropout=0.1))
relu = replace(gpt.stack, norm="post", feed_forward=FeedForwardConfig(inner_width=44, dropout=0.1))
grouped = AttentionConfig(num_heads=8, num_key_value_heads=2, key_width=6, bias=False)
additive = AttentionConfig(num_heads=4, key_width=7, scoring="additive", dropout=0.1)
CASES = {
    "translation": Case(
        "encoder_decoder",
        EncoderDecoderConfig(
            vocabulary_size=VOCABULARY, width=20, max_length=17, encoder=relu, decoder=relu, output_bias=True
        ),
        _translation,
        pairs,
    ),
    "gpt": Case("decoder_only", gpt, _language, windows),
    "gpt_swiglu_grouped_rotary": Case(
        "decoder_only",
        replace(gpt, positions="rotary", tied_output=False, stack=replace(swiglu, attention=grouped, local_window=3)),
        _language,
        windows,
    ),
    "gpt_additive_buckets": Case(
        "decoder_only",
        replace(gpt, positions="relative_buckets", stack=replace(gpt.stack, attention=additive)),
        _language,
        documents,
    ),
    "bert_alibi": Case(
        "encoder_only",
        EncoderOnlyConfig(
            vocabulary_size=VOCABULARY, width=20, max_length=17, positions="alibi", stack=stack(), head="masked"
        ),
        masked_loss,
        windows,
    ),
    "vision": Case(
        "vision",
        VisionConfig(image_size=(6, 9), patch_size=(2, 3), num_classes=5, width=20, stack=stack()),
        image_loss,
        images,
    ),
}
# For stages alone: as many layers as do not divide evenly, and stages between the two ends.
DEEP = {"gpt_deep": Case("decoder_only", replace(gpt, stack=replace(gpt.stack, num_layers=5)), _language, documents)}


def build(case: Case, dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(5)
    return FAMILIES[case.family].build(case.config).to(dtype).train()


def batches(case: Case) -> list[list[Any]]:
    random = np.random.default_rng(7)
    return [[case.batch(random) for _ in range(PARTS)] for _ in range(STEPS)]


def single(case: Case, dtype: torch.dtype) -> tuple[list[float], dict[str, Tensor]]:
    """The losses of some steps in one process, and the weights after them."""
    model = build(case, dtype)
    optimizer, losses = make_optimizer(model, OptimizerConfig()), []
    for number, parts in enumerate(batches(case)):
        targets, total = sum(each.num_targets for each in parts), 0.0
        optimizer.zero_grad()
        for part, batch in enumerate(parts):
            with seeded_dropout(part_seed(number, part), torch.device("cpu")):
                loss, plain = case.loss(model, batch)
                (loss / targets).backward()
            total += float(plain)
        clip_gradients(model, 0.5)
        _step(optimizer)
        losses.append(total / targets)
    return losses, dict(model.named_parameters())


def _step(optimizer: torch.optim.Optimizer) -> None:
    for group in optimizer.param_groups:
        group["lr"] = 0.01
    optimizer.step()


def spread(case: Case, dtype: torch.dtype, config: ParallelConfig) -> tuple[list[float], dict[str, Tensor]]:
    """The same in the processes of this group."""
    model = build(case, dtype)
    mesh = make_mesh(config, "cpu")
    step: TrainingStep[Any] = TrainingStep(model, case.loss)
    placements = parallelize(step, model, mesh, config)
    gradients: ShardedGradients[Any] = ShardedGradients(step, mesh)
    optimizer, losses = make_optimizer(model, OptimizerConfig()), []
    shards, place = mesh["replicate", "shard"].size(), mesh.get_local_rank("replicate") * mesh["shard"].size()
    place += mesh.get_local_rank("shard")
    for number, parts in enumerate(batches(case)):
        own = [(part, parts[part], True) for part in range(place, PARTS, shards)]
        loss = gradients.compute(own, sum(each.num_targets for each in parts), number)
        gradients.clip(0.5)
        _step(optimizer)
        losses.append(float(loss))
    return losses, dict(whole_tensors(dict(model.named_parameters()), placements, mesh))


def staged(case: Case, dtype: torch.dtype, config: ParallelConfig) -> tuple[list[float], dict[str, Tensor]]:
    """The same with the model in stages."""
    model = build(case, dtype)
    assert isinstance(model, DecoderOnly)
    copies, stages, shapes = config.replicate or 1, config.pipeline or 1, templates(model)
    grid = Grid(copies, stages, 60.0)
    owners = keep_stage(model, grid.stage, stages)
    prepare_blocks(model, config)
    gradients = PipelineGradients(Stage(model, case.loss, grid.stage, stages, bf16=False), owners, grid)
    optimizer, losses = make_optimizer(model, OptimizerConfig()), []
    for number, parts in enumerate(batches(case)):
        own = [(part, parts[part]) for part in range(grid.copy, PARTS, copies)]
        loss = gradients.compute(own, sum(each.num_targets for each in parts), number)
        gradients.clip(0.5)
        _step(optimizer)
        losses.append(float(loss))
    return losses, dict(whole_of_stages(dict(model.named_parameters()), shapes, owners, grid))


def compare(world: World, layouts: list[dict[str, Any]], cases: list[str], kind: str) -> list[Any]:
    """How far the losses and weights of layouts are from those of one process."""
    dtype, found = getattr(torch, kind), []
    for name in cases:
        case = {**CASES, **DEEP}[name]
        losses, weights = single(case, dtype)
        for layout in layouts:
            others, gathered = (staged if "pipeline" in layout else spread)(case, dtype, ParallelConfig(**layout))
            assert weights.keys() == gathered.keys()
            by_loss = max(abs(a - b) for a, b in zip(losses, others, strict=True))
            by_weight = max(float((weights[each].detach() - gathered[each]).abs().max()) for each in weights)
            found.append([name, str(layout), by_loss, by_weight])
    return found


def compare_kinds(world: World, layouts: list[dict[str, Any]], cases: list[str], kinds: list[str]) -> dict[str, Any]:
    """The same in several precisions."""
    return {kind: compare(world, layouts, cases, kind) for kind in kinds}
