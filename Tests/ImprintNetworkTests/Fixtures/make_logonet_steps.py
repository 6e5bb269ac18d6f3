"""Writes logonet_steps.json: the losses of ten training steps of LogoNet in PyTorch.

Run:  python3 -m venv .venv && .venv/bin/pip install torch numpy
      .venv/bin/python Tests/ImprintNetworkTests/Fixtures/make_logonet_steps.py

LogoNet: four blocks of 3x3 convolution (padding 1, no bias), batch normalization, ReLU and 2x2 max pooling with 32, 64,
128 and 256 channels; global average pooling; dense layer with 2 outputs. Parameters and images are not stored: Python
and Swift compute them with the formula in `uniform`, in the layout of Imprint (images [N, H, W, C]; weights [height,
width, inputs, outputs] and [inputs, outputs]). The file has the results in float32 and in float64.
"""

import json
import math
import platform
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)

STEPS = 10
# Rounding errors grow with every step, and faster with a higher learning rate: errors of 5e-6 in every convolution change
# the losses by less than 3e-4 (relative) at .005, and by up to 4e-3 at .02.
RATE, MOMENTUM, WEIGHT_DECAY = 0.005, 0.9, 1e-4


def uniform(seed, shape):
    """Returns float64 values, uniform in −0.5 ..< 0.5, from 24 bits of SplitMix64 of the index."""
    z = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(seed * 0xBF58476D1CE4E5B9 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return ((z >> np.uint64(40)).astype(np.float64) * 2.0**-24 - 0.5).reshape(shape)


def parameter_table():
    """Returns (name, shape, scale, offset) of each parameter; the seed is 1 + the index. Weights have variance 2 / fan-in
    (He), and 1 / fan-in in the dense layer; a uniform distribution of width 1 has variance 1 / 12."""
    table, inputs = [], 3
    for block, outputs in enumerate((32, 64, 128, 256), start=1):
        table += [
            (f"conv{block}.weight", [3, 3, inputs, outputs], math.sqrt(2 / (9 * inputs)) * math.sqrt(12), 0.0),
            (f"norm{block}.scale", [outputs], 0.0, 1.0), (f"norm{block}.shift", [outputs], 0.0, 0.0)]
        inputs = outputs
    table += [("head.weight", [inputs, 2], math.sqrt(1 / inputs) * math.sqrt(12), 0.0), ("head.bias", [2], 0.0, 0.0)]
    return table


def batch(step, count, size, dtype):
    """Returns images in −1 ..< 1, whose first channel is brighter by 0.2 · label, and their labels."""
    labels = [(step + i) % 2 for i in range(count)]
    images = uniform(1000 + step, [count, size, size, 3]) * 2.0
    images[..., 0] += 0.2 * np.array(labels).reshape(-1, 1, 1)
    return torch.tensor(images.astype(np.float32)).to(dtype).permute(0, 3, 1, 2), torch.tensor(labels)


def train(count, size, dtype):
    """Returns the losses of ten steps, the gradient norms of the first step and the parameter norms after the last."""
    w = {
        name: torch.tensor((uniform(1 + index, shape) * scale + offset).astype(np.float32)).to(dtype).requires_grad_()
        for index, (name, shape, scale, offset) in enumerate(parameter_table())}
    running = {}
    for block in range(1, 5):
        channels = w[f"norm{block}.scale"].shape[0]
        running[f"norm{block}.runningMean"] = torch.zeros(channels, dtype=dtype)
        running[f"norm{block}.runningVariance"] = torch.ones(channels, dtype=dtype)
    decayed = [p for name, p in w.items() if name.endswith(".weight")]
    others = [p for name, p in w.items() if not name.endswith(".weight")]
    optimizer = torch.optim.SGD(
        [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}],
        lr=RATE, momentum=MOMENTUM)

    def norms(tensors):
        return {name: float(f"{t.detach().double().norm().item():.9g}") for name, t in tensors.items()}

    losses, gradient_norms = [], {}
    for step in range(STEPS):
        x, labels = batch(step, count, size, dtype)
        for block in range(1, 5):
            x = F.conv2d(x, w[f"conv{block}.weight"].permute(3, 2, 0, 1), padding=1)
            x = F.batch_norm(
                x, running[f"norm{block}.runningMean"], running[f"norm{block}.runningVariance"],
                w[f"norm{block}.scale"], w[f"norm{block}.shift"], training=True, momentum=0.1, eps=1e-5)
            x = F.max_pool2d(F.relu(x), 2)
        loss = F.cross_entropy(F.linear(x.mean(dim=(2, 3)), w["head.weight"].T, w["head.bias"]), labels)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            gradient_norms = norms({name: p.grad for name, p in w.items()})
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "gradientNorms": gradient_norms, "finalNorms": norms(w | running)}


def case(count, size):
    single, double = train(count, size, torch.float32), train(count, size, torch.float64)
    difference = max(abs(a / b - 1) for a, b in zip(single["losses"], double["losses"]))
    print(f"{size}x{size}, batch {count}: maximum relative difference of float32 and float64 losses {difference:.2g}")
    assert difference < 1e-3, "float32 and float64 diverge; lower the learning rate"
    return {"inputSize": size, "batch": count, "float32": single, "float64": double}


if __name__ == "__main__":
    result = {
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
        "network": "logonet",
        "options": {"learningRate": RATE, "momentum": MOMENTUM, "nesterov": False, "weightDecay": WEIGHT_DECAY},
        "steps": STEPS,
        "parameters": {
            name: {"seed": 1 + index, "shape": shape, "scale": scale, "offset": offset}
            for index, (name, shape, scale, offset) in enumerate(parameter_table())},
        "images": {"firstSeed": 1000, "scale": 2.0, "labelOffset": 0.2},
        "cases": [case(8, 96), case(5, 33)],
    }
    Path(__file__).with_name("logonet_steps.json").write_text(json.dumps(result, indent=1) + "\n")
