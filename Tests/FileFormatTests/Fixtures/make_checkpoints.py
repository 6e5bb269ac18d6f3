"""Writes the PyTorch checkpoints of the tests, and their tensors as expected.json.

Run it with a Python that has torch, numpy and safetensors: python make_checkpoints.py
"""

import argparse
import json
import pathlib
from collections import OrderedDict

import numpy
import safetensors.torch
import torch

folder = pathlib.Path(__file__).parent / "Checkpoints"


def tensors():
    """Returns tensors of all types and many strides."""
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4) / 7
    result = OrderedDict()
    result["layer.weight"] = base.clone()
    result["layer.bias"] = torch.tensor([-1.5, 0.0, float("inf")])
    result["view.transposed"] = base.permute(2, 0, 1)
    result["view.steps"] = base[:, 1:, ::2]
    result["view.column"] = base[1, :, 3]
    result["view.repeated"] = torch.tensor([[3.0], [4.0]]).expand(2, 5)
    result["half"] = torch.tensor([1.5, -2, 65504, 2.0**-24], dtype=torch.float16)
    result["half.transposed"] = torch.arange(6, dtype=torch.float16).reshape(2, 3).t()
    result["bfloat16"] = torch.tensor([1.0, -3.25, 1e30], dtype=torch.bfloat16)
    result["double"] = torch.tensor([1 / 3, 1e-40, -1e300], dtype=torch.float64)
    result["long"] = torch.tensor([2**40 + 1, -7])
    result["int"] = torch.tensor([-(2**31), 5], dtype=torch.int32)
    result["short"] = torch.tensor([[-300], [300]], dtype=torch.int16)
    result["char"] = torch.tensor([-128, 127], dtype=torch.int8)
    result["byte"] = torch.tensor([0, 255], dtype=torch.uint8)
    result["bool"] = torch.tensor([True, False, True])
    result["scalar"] = torch.tensor(11)
    result["empty"] = torch.zeros(2, 0, 3)
    result["parameter"] = torch.nn.Parameter(torch.tensor([[0.1, 0.2]]))
    return result


def described(state):
    return [
        {"name": name, "shape": list(tensor.shape), "values": [str(v) for v in tensor.detach().float().flatten().tolist()]}
        for name, tensor in state.items()
    ]


def main():
    folder.mkdir(exist_ok=True)
    state = tensors()
    torch.save(state, folder / "zip.pth")
    torch.save(state, folder / "legacy.pth", _use_new_zipfile_serialization=False)
    torch.save(dict(state), folder / "zip-protocol5.pth", pickle_protocol=5)
    torch.save(state, folder / "legacy-protocol4.pth", pickle_protocol=4, _use_new_zipfile_serialization=False)
    contiguous = {name: tensor.detach().clone().contiguous() for name, tensor in state.items()}
    safetensors.torch.save_file(contiguous, folder / "tensors.safetensors")

    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 1), torch.nn.BatchNorm2d(2))
    with torch.no_grad():
        for index, parameter in enumerate(model.parameters()):
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) + index)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 1, 2, 2)).sum().backward()
    optimizer.step()
    wrapped = {
        "epoch": 3,
        "loss": [0.5, 0.25],
        "best": numpy.float64(0.75),
        "args": argparse.Namespace(lr=0.1, layers=(1, 2)),
        "device": torch.device("cpu"),
        "state_dict": torch.nn.DataParallel(model).state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    torch.save(wrapped, folder / "wrapped.pth")
    averaged = {"model": model.state_dict(), "model_ema": {"0.weight": torch.zeros(1)}}
    torch.save(averaged, folder / "averaged.pth")
    torch.save(model, folder / "module.pth")

    expected = {"tensors": described(state), "model": described(model.state_dict())}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


main()
