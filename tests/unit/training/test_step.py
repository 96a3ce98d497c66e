import torch
from torch import Tensor, nn

from heedful.training.step import TrainingStep


def squares(model: nn.Module, batch: Tensor) -> tuple[Tensor, Tensor]:
    loss = model(batch).square().sum()
    return loss, loss.detach()


def test_a_part_of_a_step_is_one_call_of_one_module() -> None:
    model, seen = nn.Linear(5, 3), []
    step = TrainingStep(model, squares)
    step.register_forward_hook(lambda module, arguments, losses: seen.append(losses[1].item()))
    loss, plain = step(torch.ones(7, 5))
    assert seen == [plain.item()]
    assert loss.requires_grad
    assert [each is own for each, own in zip(step.parameters(), model.parameters(), strict=True)] == [True, True]


def test_bf16_is_for_the_products_of_the_model() -> None:
    kinds = []

    def loss(model: nn.Module, batch: Tensor) -> tuple[Tensor, Tensor]:
        kinds.append(model(batch).dtype)
        return squares(model, batch)

    for bf16 in (False, True):
        TrainingStep(nn.Linear(5, 3), loss, bf16)(torch.ones(7, 5))
    assert kinds == [torch.float32, torch.bfloat16]
