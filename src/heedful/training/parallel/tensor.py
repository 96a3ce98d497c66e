"""Tensor parallelism: the layers of a model are split over processes, mostly by hooks and parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor import Placement as TensorPlacement

from heedful.errors import UserError
from heedful.layers.attention import Attend
from heedful.layers.dropout import Dropout, dropout_of_share
from heedful.layers.feed_forward import FeedForward
from heedful.layers.multi_head_attention import AttentionHeads, MultiHeadAttention, SelfAttention
from heedful.layers.positions import PositionScheme
from heedful.layers.relative_attention import RelativeAttention
from heedful.training.parallel.placements import Placement, check_divisible, placements
from heedful.training.parallel.vocabulary import SplitVocabulary


def split_layers(model: nn.Module, mesh: DeviceMesh) -> dict[str, Placement]:
    """Leave in this process its share of a model's layers, as `placements` says; return those of what is split.

    A module whose layers are split still takes and gives whole activations: attention, feed-forward networks and
    embeddings sum what all processes give; the output layer joins its logits, but its loss does without that.
    """
    check_split(model, mesh.size())
    split = {name: each for name, each in placements(model).items() if each.axis is not None}
    _distribute_parameters(model, split, mesh)
    schemes: dict[int, PositionScheme] = {}
    for module in list(model.modules()):
        if isinstance(module, AttentionHeads):
            _split_attention(module, mesh)
        if isinstance(module, SelfAttention):
            schemes[id(module._positions[0])] = module._positions[0]
        if isinstance(module, FeedForward):
            _split_feed_forward(module, mesh)
        if isinstance(module, nn.Embedding) and isinstance(module.weight, DTensor):
            _attach(module, mesh, Replicate(), Replicate())
    for scheme in schemes.values():
        if scheme.uses("bias"):
            scheme.bias = partial(_share_of_bias, scheme.bias, mesh)  # type: ignore[method-assign]
    output = getattr(model, "output", None)
    if isinstance(output, nn.Linear) and isinstance(output.weight, DTensor):
        SplitVocabulary.take_over(output, mesh)
        _attach(output, mesh, Replicate(), Replicate())
    return split


def check_split(model: nn.Module, size: int) -> None:
    """Raise a UserError if the layers of a model cannot be split over this many processes."""
    check_divisible(model, size)
    if any(isinstance(each, RelativeAttention | nn.LSTM | nn.GRU) for each in model.modules()):
        raise UserError(
            f"training.parallel.tensor is {size}, but a {type(model).__name__} cannot be split over processes: "
            "use replicate or shard"
        )


def _distribute_parameters(model: nn.Module, split: dict[str, Placement], mesh: DeviceMesh) -> None:
    """Replace parameters by this process's shares of them; one that is used in several places stays one."""
    rank, size, owners = mesh.get_local_rank(), mesh.size(), _owners(model)
    for name, placement in split.items():
        whole = model.get_parameter(name)
        share = _distributed(whole, placement, mesh, rank, size)
        for module, attribute in owners[id(whole)]:
            setattr(module, attribute, share)


def _owners(model: nn.Module) -> dict[int, list[tuple[nn.Module, str]]]:
    found: dict[int, list[tuple[nn.Module, str]]] = {}
    for module in model.modules():
        for attribute, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            found.setdefault(id(parameter), []).append((module, attribute))
    return found


def _distributed(whole: nn.Parameter, placement: Placement, mesh: DeviceMesh, rank: int, size: int) -> nn.Parameter:
    assert placement.axis is not None
    share = placement.share(whole.detach(), rank, size)
    tensor = DTensor.from_local(
        share, mesh, [Shard(placement.axis)], run_check=False, shape=whole.shape, stride=whole.stride()
    )
    return nn.Parameter(tensor, requires_grad=whole.requires_grad)


def _attach(module: nn.Module, mesh: DeviceMesh, taken: TensorPlacement, given: TensorPlacement) -> None:
    """Let a layer with split parameters take and give plain tensors, placed as `taken` and `given` say."""

    def enter(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (DTensor.from_local(inputs[0], mesh, [taken], run_check=False), *inputs[1:])

    def leave(module: nn.Module, inputs: tuple[Any, ...], output: DTensor) -> Tensor:
        return output.redistribute(placements=[given]).to_local()

    module.register_forward_pre_hook(enter)
    module.register_forward_hook(leave)


def _sum_shares(output: nn.Linear, mesh: DeviceMesh) -> None:
    """Let a layer that is split by its inputs sum what the processes give, and add its bias once."""
    if output.bias is not None:
        bias = DTensor.from_local(output.bias.detach(), mesh, [Replicate()], run_check=False)
        output.bias = nn.Parameter(bias, requires_grad=output.bias.requires_grad)
    _attach(output, mesh, Shard(-1), Replicate())


def _split_attention(attention: AttentionHeads, mesh: DeviceMesh) -> None:
    size = mesh.size()
    whole_heads = attention.num_heads
    attention.num_heads //= size
    attention.num_key_value_heads //= size
    assert isinstance(attention, SelfAttention | MultiHeadAttention)
    attention.parts = tuple((heads // size, width) for heads, width in attention.parts)  # type: ignore[assignment]
    columns = ("query_key_value_projection", "query_projection", "key_value_projection")
    for name in columns:
        if hasattr(attention, name):
            _attach(getattr(attention, name), mesh, Replicate(), Shard(-1))
    _sum_shares(attention.output_projection, mesh)
    first = mesh.get_local_rank() * attention.num_heads
    attention.attend = _attend_by_share(attention.attend, first, whole_heads)
    if attention.scoring_vector is not None:
        _use_local(attention, "scoring_vector")


def _attend_by_share(attend: Attend, first: int, heads: int) -> Attend:
    """Attention of some of the heads, whose dropout is that of these heads among all."""

    def attend_share(*arguments: Any) -> Tensor:
        with dropout_of_share(1, first, heads):
            return attend(*arguments)

    return attend_share


def _use_local(module: nn.Module, name: str) -> None:
    """Let a module compute with its own share of a parameter as a plain tensor, inside its forward."""

    def enter(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        # An attribute of the instance takes precedence over the parameter of that name.
        module.__dict__[name] = cast(DTensor, module._parameters[name]).to_local()

    def leave(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        module.__dict__.pop(name, None)

    module.register_forward_pre_hook(enter)
    module.register_forward_hook(leave, always_call=True)


def _split_feed_forward(network: FeedForward, mesh: DeviceMesh) -> None:
    _attach(network.inner_projection, mesh, Replicate(), Shard(-1))
    _sum_shares(network.output_projection, mesh)
    if isinstance(network.activation, nn.ReLU):
        network.activation.inplace = False  # torch forbids writing into what came out of a DTensor
    if isinstance(network.dropout, Dropout):
        width = network.output_projection.in_features
        first = mesh.get_local_rank() * (width // mesh.size())
        network.dropout = ShareDropout(network.dropout, first, width)  # type: ignore[assignment]


class ShareDropout(nn.Module):
    """The dropout of a share of the last axis: that part of what a single process drops."""

    def __init__(self, dropout: Dropout, first: int, length: int) -> None:
        super().__init__()
        self.dropout, self.first, self.length = dropout, first, length

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements, if in training."""
        with dropout_of_share(-1, self.first, self.length):
            return cast(Tensor, self.dropout(x))


def _share_of_bias(
    bias: Callable[[Tensor, Tensor], Tensor | None], mesh: DeviceMesh, query_positions: Tensor, key_positions: Tensor
) -> Tensor | None:
    """What the positions add to the scores of this process's heads; its gradient is that of all heads."""
    whole = bias(query_positions, key_positions)
    if whole is None:
        return None
    heads = DTensor.from_local(whole, mesh, [Replicate()], run_check=False)
    return heads.redistribute(placements=[Shard(whole.dim() - 3)]).to_local()


def local_tensor(tensor: Tensor) -> Tensor:
    """What this process holds of a tensor, which may be all of it."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
