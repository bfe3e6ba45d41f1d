"""Runs a transformers model in f64, to know the f32 error of its results."""

import torch
from torch.overrides import TorchFunctionMode


class InDouble(TorchFunctionMode):
    """Runs a model in f64 although its code asks for f32 in places (norms, softmax, rotary angles)."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        swap = lambda value: torch.float64 if value is torch.float32 else value
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        return function(*[swap(a) for a in args], **{k: swap(v) for k, v in (kwargs or {}).items()})


def in_double(make, model):
    """make() with the parameters of model, in f64; rotary frequencies are computed in f64 too."""
    torch.set_default_dtype(torch.float64)
    try:
        with InDouble():
            twin = make().double().eval()
    finally:
        torch.set_default_dtype(torch.float32)
    twin.load_state_dict({k: v.double() for k, v in model.state_dict().items()})
    return twin
