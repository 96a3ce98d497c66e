import pytest
import torch

from heedful.errors import UserError
from heedful.machine.memory import out_of_memory
from heedful.training.gradients import ParallelGradients
from heedful.training.parts import Parts
from heedful.training.step import TrainingStep
from linear_task import Rows


def all_parts(*batches: torch.Tensor) -> Parts[Rows]:
    """Batches as the parts of a step that one process computes alone."""
    numbers = list(range(len(batches)))
    return Parts(numbers, [Rows(batch) for batch in batches], [numbers])


class Squares:
    """Fits a linear layer to zero; more than `room` rows at once do not fit into memory."""

    def __init__(self, room: int) -> None:
        self.room = room

    def loss(self, model: torch.nn.Linear, batch: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        if len(batch.values) > self.room:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes.")
        loss = model(batch.values).square().sum()
        return loss, loss.detach()


def setting(room: int = 100, workers: int = 2) -> tuple[torch.nn.Linear, ParallelGradients[Rows], torch.Tensor]:
    torch.manual_seed(1)
    model = torch.nn.Linear(5, 3)
    step = TrainingStep(model, Squares(room).loss)
    return model, ParallelGradients(step, workers, 1), torch.randn(11, 5)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_parts_add_up_to_the_gradient_of_the_whole(workers: int) -> None:
    model, gradients, rows = setting(workers=workers)
    mean = gradients.compute(all_parts(rows[:2], rows[2:7], rows[7:]), 11, 1, lambda: None)
    expected = model(rows).square().sum() / 11
    torch.testing.assert_close(mean, expected.item())
    for parameter, right in zip(
        model.parameters(), torch.autograd.grad(expected, list(model.parameters())), strict=True
    ):
        torch.testing.assert_close(parameter.grad, right)


def test_what_does_not_fit_is_split_until_it_does() -> None:
    model, gradients, rows = setting(room=3)
    splits = []
    mean = gradients.compute(all_parts(rows), 11, 1, lambda: splits.append(1))
    assert len(splits) == 1  # 11 -> 3 + 3 + 3 + 2
    torch.testing.assert_close(mean, (model(rows).square().sum() / 11).item())


def test_one_example_that_does_not_fit_is_an_error() -> None:
    _, gradients, rows = setting(room=0)
    with pytest.raises(UserError, match="single example does not fit"):
        gradients.compute(all_parts(rows), 11, 1, lambda: None)


def test_other_errors_are_not_taken_for_lack_of_memory() -> None:
    assert not out_of_memory(RuntimeError("shapes do not match"))
    assert out_of_memory(MemoryError())
