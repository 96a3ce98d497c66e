import pytest
import torch
from torch import nn

from heedful.errors import UserError
from heedful.models.weights_file import adopt_parameters, load_parameters, parameter_tensors

BOTH = pytest.mark.parametrize("load", [load_parameters, adopt_parameters])


def tied_model() -> nn.Module:
    model = nn.ModuleDict({"embedding": nn.Embedding(7, 5), "output": nn.Linear(5, 7)})
    model["output"].weight = model["embedding"].weight
    return model


@BOTH
def test_parameters_get_the_saved_values_and_stay_tied(load) -> None:
    saved, model = parameter_tensors(tied_model()), tied_model()
    load(model, saved)
    assert model["output"].weight is model["embedding"].weight and model["output"].weight.requires_grad
    for name, tensor in parameter_tensors(model).items():
        assert torch.equal(tensor, saved[name])
        assert (tensor.data_ptr() == saved[name].data_ptr()) == (load is adopt_parameters)


@BOTH
def test_values_of_another_type_are_converted(load) -> None:
    saved = {name: tensor.half() for name, tensor in parameter_tensors(tied_model()).items()}
    model = tied_model()
    load(model, saved)
    for name, tensor in parameter_tensors(model).items():
        assert tensor.dtype == torch.float32 and torch.equal(tensor, saved[name].float())


@BOTH
def test_what_does_not_fit_is_listed_and_nothing_is_changed(load) -> None:
    model, saved = tied_model(), parameter_tensors(tied_model())
    before = {name: tensor.clone() for name, tensor in parameter_tensors(model).items()}
    bias = saved.pop("output.bias")
    with pytest.raises(UserError, match=r"missing output\.bias; not part of the model bias$"):
        load(model, {**saved, "bias": bias})
    with pytest.raises(UserError, match=r"output\.bias is \(6,\), expected \(7,\)"):
        load(model, {**saved, "output.bias": bias[:6]})
    assert all(torch.equal(tensor, before[name]) for name, tensor in parameter_tensors(model).items())
