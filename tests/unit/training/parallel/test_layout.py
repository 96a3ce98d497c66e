import pytest

from heedful.errors import UserError
from heedful.training.config import ParallelConfig
from heedful.training.parallel.layout import choose_layout, is_sharded


def axes(config: ParallelConfig) -> tuple[int | None, ...]:
    return config.replicate, config.shard, config.tensor, config.pipeline


@pytest.mark.parametrize(
    ("asked", "size", "chosen"),
    [
        ({}, 1, (1, 1, 1, 1)),
        ({}, 6, (6, 1, 1, 1)),
        ({"shard": 2}, 6, (3, 2, 1, 1)),
        ({"tensor": 3}, 6, (2, 1, 3, 1)),
        ({"replicate": 1}, 6, (1, 6, 1, 1)),
        ({"replicate": 1, "shard": 2}, 6, (1, 2, 3, 1)),
        ({"replicate": 1, "shard": 2, "tensor": 3}, 6, (1, 2, 3, 1)),
        ({"pipeline": 3}, 6, (2, 1, 1, 3)),
    ],
)
def test_what_is_not_asked_for_is_filled_in(asked: dict[str, int], size: int, chosen: tuple[int, ...]) -> None:
    layout = choose_layout(ParallelConfig(**asked), size, "cpu")
    assert axes(layout) == chosen
    assert layout.reduce == ("fast" if is_sharded(layout) else "exact")


def test_sums_are_exact_only_where_every_process_has_the_whole_model_on_a_cpu() -> None:
    assert choose_layout(ParallelConfig(), 2, "cuda").reduce == "fast"
    assert is_sharded(choose_layout(ParallelConfig(reduce="fast"), 2, "cpu"))
    assert not is_sharded(choose_layout(ParallelConfig(), 2, "cpu"))
    with pytest.raises(UserError, match='reduce is "exact", which goes with replicate alone'):
        choose_layout(ParallelConfig(shard=2, reduce="exact"), 2, "cpu")


def test_what_does_not_go_with_the_number_of_processes_is_told() -> None:
    with pytest.raises(UserError, match="asks for shard 3 = 3 processes, but there are 2: start 3"):
        choose_layout(ParallelConfig(shard=3), 2, "cpu")
    with pytest.raises(UserError, match="asks for replicate 1 x shard 1 x tensor 2 = 2 processes, but there are 4"):
        choose_layout(ParallelConfig(replicate=1, shard=1, tensor=2), 4, "cpu")
    with pytest.raises(UserError, match="but there is 1"):
        choose_layout(ParallelConfig(tensor=2), 1, "cpu")


def test_stages_go_with_copies_alone() -> None:
    for axis in ("shard", "tensor"):
        with pytest.raises(UserError, match="pipeline is 2, which goes with replicate alone: leave out shard and"):
            choose_layout(ParallelConfig(pipeline=2, **{axis: 2}), 4, "cpu")
    with pytest.raises(UserError, match="goes with replicate alone"):
        choose_layout(ParallelConfig(pipeline=2, replicate=1), 4, "cpu")
    with pytest.raises(UserError, match='reduce is "exact", which goes with replicate alone'):
        choose_layout(ParallelConfig(pipeline=2, reduce="exact"), 2, "cpu")


def test_compiled_blocks_go_with_whole_layers_that_are_computed_once() -> None:
    assert choose_layout(ParallelConfig(compile=True, shard=2), 4, "cpu").compile
    with pytest.raises(UserError, match="compile does not go with tensor"):
        choose_layout(ParallelConfig(compile=True, tensor=2), 2, "cpu")
    with pytest.raises(UserError, match="compile does not go with activation_checkpointing"):
        ParallelConfig(compile=True, activation_checkpointing=True)


def test_a_run_that_goes_on_keeps_its_layout_unless_another_is_asked_for() -> None:
    before = choose_layout(ParallelConfig(shard=2), 4, "cpu")
    assert axes(choose_layout(ParallelConfig(), 4, "cpu", before)) == (2, 2, 1, 1)
    assert axes(choose_layout(ParallelConfig(tensor=2), 4, "cpu", before)) == (2, 1, 2, 1)
    staged = choose_layout(ParallelConfig(pipeline=2), 4, "cpu", before)
    assert axes(staged) == axes(choose_layout(ParallelConfig(), 4, "cpu", staged)) == (2, 1, 1, 2)
    alone = choose_layout(ParallelConfig(), 1, "cpu", before)
    assert axes(alone) == (1, 1, 1, 1) and not is_sharded(alone)


def test_copies_follow_the_number_of_processes_and_shares_of_a_copy_do_not() -> None:
    layout = choose_layout(ParallelConfig(shard=2), 6, "cpu")
    for size, copies in ((4, 2), (2, 1), (6, 3)):  # a machine is lost, another one, and both come back
        layout = choose_layout(ParallelConfig(shard=2), size, "cpu", layout)
        assert axes(layout) == (copies, 2, 1, 1)
    layout = choose_layout(ParallelConfig(), 2, "cpu")
    for size in (1, 2):
        layout = choose_layout(ParallelConfig(), size, "cpu", layout)
        assert (axes(layout), layout.reduce) == ((size, 1, 1, 1), "exact")
