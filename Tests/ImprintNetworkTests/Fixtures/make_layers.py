"""Writes layers.json: the results of small networks, losses and optimizer steps in PyTorch.

Run:  python3 -m venv .venv && .venv/bin/pip install torch numpy
      .venv/bin/python Tests/ImprintNetworkTests/Fixtures/make_layers.py

Inputs, parameters and upstream gradients are not stored: Python and Swift compute them with the formula in `tensor`, in
the layout of Imprint (activations [N, H, W, C]; weights [kernel height, kernel width, inputs / groups, outputs] and
[inputs, outputs]). PyTorch computes in float64 from these float32 values, so its rounding errors do not affect the
comparison. Networks and options have the JSON format of Imprint.
"""

import functools
import json
import math
import platform
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)


# --- Values from a formula ---

def tensor(spec, shape):
    """Returns u · scale + offset as float32; u is uniform in −0.5 ..< 0.5, from 24 bits of SplitMix64 of the index."""
    z = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(spec["seed"] * 0xBF58476D1CE4E5B9 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    uniform = (z >> np.uint64(40)).astype(np.float64) * 2.0**-24 - 0.5
    return (uniform * spec["scale"] + spec["offset"]).astype(np.float32).reshape(shape)


def spec(seed, scale=2.0, offset=0.0):
    return {"seed": seed, "scale": scale, "offset": offset}


def leaf(spec, shape):
    return torch.tensor(tensor(spec, shape).astype(np.float64), requires_grad=True)


def rounded(values):
    """Rounds to nine significant digits; values below the smallest normal float32 become 0."""
    values = torch.as_tensor(values).detach().reshape(-1).tolist()
    return [float(f"{v:.9g}") if abs(v) >= np.finfo(np.float32).tiny else 0.0 for v in values]


# --- Descriptions in the JSON format of Imprint ---

def size(value):
    height, width = value if isinstance(value, tuple) else (value, value)
    return {"height": height, "width": width}


def padding(value):
    """Encodes "valid", "same", one size for all sides, or (top, left, bottom, right)."""
    if isinstance(value, str):
        return value
    sides = value if isinstance(value, tuple) else (value,) * 4
    return dict(zip(("top", "left", "bottom", "right"), sides))


def node(kind, inputs=("input",), name="layer", **properties):
    return {"name": name, "kind": kind, "inputs": list(inputs), "properties": properties}


def convolution(outputs, kernel, stride=1, pad="valid", dilation=1, groups=1, bias=True, **rest):
    return node(
        "convolution", outputChannels=outputs, kernelSize=size(kernel), stride=size(stride), padding=padding(pad),
        dilation=size(dilation), groups=groups, hasBias=bias, **rest)


def pool(kind, kernel, stride, pad="valid", up=False, **rest):
    return node(kind, kernelSize=size(kernel), stride=size(stride), padding=padding(pad), roundsUp=up, **rest)


def border(top, left, bottom, right, mode):
    return node("pad", top=top, left=left, bottom=bottom, right=right, mode=mode)


def response(size, alpha=1e-4, beta=0.75, bias=1.0):
    return node("localResponseNormalization", size=size, alpha=alpha, beta=beta, bias=bias)


def dense(outputs, bias=True, **rest):
    return node("dense", outputChannels=outputs, hasBias=bias, **rest)


def norm(running=False, momentum=0.1, epsilon=1e-5, **rest):
    return node("batchNormalization", momentum=momentum, epsilon=epsilon, usesRunningStatistics=running, **rest)


# --- The same layers in PyTorch; activations stay [N, H, W, C] between them ---

def planes(x):
    return x.permute(0, 3, 1, 2)


def pixels(x):
    return x.permute(0, 2, 3, 1)


def sides(p, x):
    """Returns the padding (left, right, top, bottom) for F.pad. With "same" the output length is ⌈input / stride⌉, and an
    odd pixel is added at the bottom or right, as in TensorFlow and Core ML."""
    if isinstance(p["padding"], dict):
        return [p["padding"][side] for side in ("left", "right", "top", "bottom")]
    if p["padding"] == "valid":
        return [0, 0, 0, 0]
    border = []
    for axis, length in (("width", x.shape[3]), ("height", x.shape[2])):
        kernel, stride = p["kernelSize"][axis], p["stride"][axis]
        dilation = p.get("dilation", size(1))[axis]
        total = max((-(-length // stride) - 1) * stride + (kernel - 1) * dilation + 1 - length, 0)
        border += [total // 2, total - total // 2]
    return border


def both(size):
    return size["height"], size["width"]


def parameter_shapes(kind, p, image, channels):
    if kind == "convolution":
        weight = [*both(p["kernelSize"]), channels // p["groups"], p["outputChannels"]]
    elif kind == "dense":
        weight = [channels, p["outputChannels"]]
    elif kind == "affine":
        extent = [channels] if p["extent"] == "channels" else [*image, channels]
        return {name: extent for name in ("scale", "shift") if p[f"has{name.capitalize()}"]}
    elif kind == "prelu":
        return {"slope": [1 if p["isShared"] else channels]}
    elif kind == "batchNormalization":
        return {name: [channels] for name in ("scale", "shift", "runningMean", "runningVariance")}
    else:
        return {}
    return {"weight": weight, "bias": [p["outputChannels"]]} if p["hasBias"] else {"weight": weight}


def run_convolution(p, w, x):
    x = planes(x)
    return pixels(F.conv2d(
        F.pad(x, sides(p, x)), w["weight"].permute(3, 2, 0, 1), w.get("bias"), stride=both(p["stride"]),
        dilation=both(p["dilation"]), groups=p["groups"]))


def run_max_pool(p, w, x):
    x = planes(x)
    if p["roundsUp"]:
        left, right, top, bottom = sides(p, x)
        assert left == right and top == bottom
        return pixels(F.max_pool2d(x, both(p["kernelSize"]), both(p["stride"]), (top, left), ceil_mode=True))
    padded = F.pad(x, sides(p, x), value=-torch.inf)
    return pixels(F.max_pool2d(padded, both(p["kernelSize"]), both(p["stride"])))


def run_average_pool(p, w, x):
    x = planes(x)
    if p["roundsUp"]:
        left, right, top, bottom = sides(p, x)
        assert left == right and top == bottom
        return pixels(F.avg_pool2d(
            x, both(p["kernelSize"]), both(p["stride"]), (top, left), ceil_mode=True,
            count_include_pad=p["countsPadding"]))

    def mean(x):
        return F.avg_pool2d(F.pad(x, sides(p, x)), both(p["kernelSize"]), both(p["stride"]))

    return pixels(mean(x) if p["countsPadding"] else mean(x) / mean(torch.ones_like(x)))


def run_affine(p, w, x):
    return x * w.get("scale", 1) + w.get("shift", 0)


def run_pad(p, w, x):
    border = [p[side] for side in ("left", "right", "top", "bottom")]
    if isinstance(p["mode"], dict):
        return pixels(F.pad(planes(x), border, value=p["mode"]["constant"]))
    return pixels(F.pad(planes(x), border, mode={"reflect": "reflect", "edge": "replicate"}[p["mode"]]))


def run_upsample(p, w, x):
    return pixels(F.interpolate(planes(x), scale_factor=both(p["factor"]), mode="nearest"))


def run_select(p, w, x):
    runs = [{"from": c, "count": 1} if isinstance(c, int) else c for c in p["channels"]]
    return x[..., [c for run in runs for c in range(run["from"], run["from"] + run["count"])]]


def run_mean(p, w, x):
    return x.mean([1 + ("height", "width", "channels").index(axis) for axis in p["axes"]], keepdim=True)


def run_response(p, w, x):
    """For an even size, ONNX and Imprint use one channel more above the centre, PyTorch one more below."""
    x = planes(x).flip(1)
    return pixels(F.local_response_norm(x, p["size"], p["alpha"], p["beta"], p["bias"]).flip(1))


def run_norm(p, w, x, frozen):
    return pixels(F.batch_norm(
        planes(x), w["runningMean"], w["runningVariance"], w["scale"], w["shift"],
        training=not (frozen or p["usesRunningStatistics"]), momentum=p["momentum"], eps=p["epsilon"]))


LAYERS = {
    "convolution": run_convolution,
    "maxPool": run_max_pool,
    "averagePool": run_average_pool,
    "globalAveragePool": lambda p, w, x: pixels(F.adaptive_avg_pool2d(planes(x), 1)),
    "globalMaxPool": lambda p, w, x: pixels(F.adaptive_max_pool2d(planes(x), 1)),
    "flatten": lambda p, w, x: x.reshape(x.shape[0], 1, 1, -1),
    "dense": lambda p, w, x: F.linear(x, w["weight"].T, w.get("bias")),
    "relu": lambda p, w, x: F.relu(x),
    "relu6": lambda p, w, x: F.relu6(x),
    "leakyReLU": lambda p, w, x: F.leaky_relu(x, p["slope"]),
    "sigmoid": lambda p, w, x: torch.sigmoid(x),
    "hardSwish": lambda p, w, x: F.hardswish(x),
    "softmax": lambda p, w, x: F.softmax(x, dim=3),
    "clip": lambda p, w, x: F.hardtanh(x, p.get("minimum", -torch.inf), p.get("maximum", torch.inf)),
    "hardSigmoid": lambda p, w, x: F.hardtanh(x * p["slope"] + p["offset"], 0, 1),
    "prelu": lambda p, w, x: pixels(F.prelu(planes(x), w["slope"])),
    "elu": lambda p, w, x: F.elu(x, p["alpha"]),
    "swish": lambda p, w, x: F.silu(x),
    "tanh": lambda p, w, x: torch.tanh(x),
    "softplus": lambda p, w, x: F.softplus(x, threshold=1e9),
    "affine": run_affine,
    "pad": run_pad,
    "upsampleNearest": run_upsample,
    "selectChannels": run_select,
    "mean": run_mean,
    "localResponseNormalization": run_response,
    "multiply": lambda p, w, *x: math.prod(x[1:], start=x[0]),
    "maximum": lambda p, w, *x: functools.reduce(torch.maximum, x),
    "add": lambda p, w, *x: sum(x[1:], x[0]),
    "concat": lambda p, w, *x: torch.cat(x, dim=3),
}


def layer_case(name, input, *nodes, batch=2, images=None, frozen=()):
    """Runs `nodes` forward and backward. Seed 1 is for images, 2 for the output gradient, 11… for parameters."""
    images = images or spec(1)
    x = leaf(images, [batch, *input])
    activations = {"input": x}
    specs, trained, statistics = {}, {}, {}
    for n in nodes:
        kind, p, inputs = n["kind"], n["properties"], [activations[i] for i in n["inputs"]]
        w = {}
        for parameter, shape in parameter_shapes(kind, p, inputs[0].shape[1:3], inputs[0].shape[3]).items():
            full = f"{n['name']}.{parameter}"
            offset = {"scale": 1.0, "runningVariance": 1.5, "slope": 0.25}.get(parameter, 0.0)
            specs[full] = spec(11 + len(specs), 1.0, offset)
            w[parameter] = leaf(specs[full], shape)
            if parameter.startswith("running"):
                statistics[full] = w[parameter] = w[parameter].detach()
            elif n["name"] not in frozen:
                trained[full] = w[parameter]
        if kind == "batchNormalization":
            y = run_norm(p, w, *inputs, frozen=n["name"] in frozen)
        else:
            if kind == "relu" and n["inputs"] != ["input"]:
                # Rounding must not move a value to the other side of the kink.
                assert inputs[0].abs().min() > 1e-4, f"{name}: too close to the kink"
            y = LAYERS[kind](p, w, *inputs)
        activations[n["name"]] = y
    upstream = spec(2)
    y.backward(leaf(upstream, y.shape).detach())
    height, width, channels = input
    return {
        "name": name,
        "layer": nodes[-1]["kind"],
        "batch": batch,
        "frozen": list(frozen),
        "network": {
            "name": name, "input": {"height": height, "width": width, "channels": channels}, "nodes": list(nodes)},
        "outputShape": list(y.shape[1:]),
        "input": images,
        "outputGradient": upstream,
        "parameters": specs,
        "output": rounded(y),
        "inputGradient": rounded(x.grad),
        "parameterGradients": {name: rounded(w.grad) for name, w in trained.items()},
        "statistics": {name: rounded(w) for name, w in statistics.items()},
    }


def layer_cases():
    case = layer_case
    return [
        case("convolution 1x1", (4, 5, 3), convolution(6, 1)),
        case("convolution 1x1, no bias, one pixel", (1, 1, 7), convolution(5, 1, bias=False), batch=3),
        case("convolution 1x1, stride 2", (5, 6, 4), convolution(3, 1, stride=2)),
        case("convolution 1x1 with a border", (3, 2, 3), convolution(4, 1, pad=1)),
        case("convolution 3x3, same", (7, 6, 2), convolution(3, 3, pad="same")),
        case("convolution 3x3, same, more channels than lanes", (5, 6, 9), convolution(10, 3, pad="same"), batch=1),
        case("convolution 3x3, same, no bias, batch 3", (4, 4, 2), convolution(3, 3, pad=1, bias=False), batch=3),
        case("convolution 3x3, valid", (6, 7, 2), convolution(4, 3)),
        case("convolution 3x3, valid, one window", (3, 3, 2), convolution(3, 3)),
        case("convolution 3x3, same, one pixel", (1, 1, 3), convolution(4, 3, pad="same")),
        case("convolution 3x3, same, one row", (1, 9, 2), convolution(3, 3, pad="same")),
        case("convolution 3x3, border of 2", (3, 5, 2), convolution(3, 3, pad=2)),
        case("convolution 3x3, uneven border", (5, 9, 2), convolution(3, 3, pad=(0, 2, 1, 0))),
        case("convolution 3x3, stride 2, same, odd size", (7, 5, 2), convolution(3, 3, stride=2, pad="same")),
        case("convolution 3x3, stride 2, same, even size", (6, 8, 2), convolution(3, 3, stride=2, pad="same")),
        case("convolution 3x3, stride 2x1, border 1", (6, 5, 3), convolution(4, 3, stride=(2, 1), pad=1)),
        case("convolution 5x5, stride 3, uneven border", (8, 7, 2), convolution(3, 5, stride=3, pad=(1, 2, 3, 0))),
        case("convolution 3x3, dilation 2, same", (6, 7, 2), convolution(3, 3, pad="same", dilation=2)),
        case("convolution 3x3, dilation 2x3, valid", (6, 9, 2), convolution(3, 3, dilation=(2, 3))),
        case(
            "convolution 3x3, dilation 2, stride 2, same", (7, 8, 2),
            convolution(3, 3, stride=2, pad="same", dilation=2)),
        case("convolution 3x3, 2 groups", (5, 4, 4), convolution(6, 3, pad="same", groups=2)),
        case("convolution 1x1, 2 groups", (3, 4, 6), convolution(4, 1, groups=2)),
        case("convolution 3x3, 3 groups, two outputs an input", (4, 5, 3), convolution(6, 3, pad="same", groups=3)),
        case("depthwise 3x3, same", (5, 6, 3), convolution(3, 3, pad="same", groups=3)),
        case("depthwise 3x3, stride 2, odd size", (7, 5, 4), convolution(4, 3, stride=2, pad="same", groups=4)),
        case("depthwise 3x3, stride 2, even size", (6, 8, 3), convolution(3, 3, stride=2, pad="same", groups=3)),
        case("depthwise 3x3, border 1, no bias", (4, 4, 17), convolution(17, 3, pad=1, groups=17, bias=False), batch=1),
        case("depthwise 5x5, stride 2", (7, 8, 2), convolution(2, 5, stride=2, pad="same", groups=2)),
        case("convolution 7x7, stride 2", (9, 10, 2), convolution(3, 7, stride=2, pad=3), batch=1),
        case("convolution 2x2, same", (4, 5, 3), convolution(3, 2, pad="same")),
        case("convolution 4x4, same", (5, 6, 2), convolution(3, 4, pad="same")),
        case("convolution 4x4, stride 2, same", (7, 6, 2), convolution(3, 4, stride=2, pad="same")),
        case("convolution 3x5, same", (5, 7, 2), convolution(3, (3, 5), pad="same")),
        case("convolution 1x7, same", (3, 8, 2), convolution(3, (1, 7), pad="same")),
        case("maxPool 2x2, stride 2", (4, 6, 3), pool("maxPool", 2, 2)),
        case("maxPool 2x2, stride 2, odd size", (5, 7, 3), pool("maxPool", 2, 2)),
        case("maxPool 3x3, stride 2, border 1", (7, 6, 3), pool("maxPool", 3, 2, pad=1)),
        case("maxPool 3x3, stride 1, overlapping", (5, 4, 3), pool("maxPool", 3, 1)),
        case("maxPool 3x3, stride 2, same, even size", (6, 8, 2), pool("maxPool", 3, 2, pad="same")),
        case("maxPool 2x3, stride 1x2", (5, 7, 2), pool("maxPool", (2, 3), (1, 2))),
        case("maxPool 3x3, border 1, negative values", (5, 5, 2), pool("maxPool", 3, 2, 1), images=spec(1, 2, -3)),
        case("maxPool 3x3, equal values", (6, 6, 2), pool("maxPool", 3, 2), images=spec(1, 0, 1)),
        case("averagePool 2x2, stride 2", (4, 6, 3), pool("averagePool", 2, 2, countsPadding=False)),
        case("averagePool 2x2, odd size", (5, 7, 3), pool("averagePool", 2, 2, countsPadding=True)),
        case("averagePool 3x3, border 1, counted", (7, 6, 3), pool("averagePool", 3, 2, 1, countsPadding=True)),
        case("averagePool 3x3, border 1, not counted", (7, 6, 3), pool("averagePool", 3, 2, 1, countsPadding=False)),
        case("averagePool 3x3, stride 1, same", (4, 5, 2), pool("averagePool", 3, 1, "same", countsPadding=False)),
        case("averagePool 3x3, same, even size", (6, 4, 2), pool("averagePool", 3, 2, "same", countsPadding=False)),
        case("maxPool 3x3, rounded up", (6, 8, 3), pool("maxPool", 3, 2, up=True)),
        case("maxPool 2x2, border 1, rounded up", (4, 5, 17), pool("maxPool", 2, 2, 1, up=True)),
        case("maxPool 3x3, larger than the image, rounded up", (2, 2, 3), pool("maxPool", 3, 2, up=True)),
        case(
            "averagePool 3x3, border 1, counted, rounded up", (6, 7, 3),
            pool("averagePool", 3, 2, 1, up=True, countsPadding=True)),
        case(
            "averagePool 3x3, stride 2x3, rounded up", (6, 6, 17),
            pool("averagePool", 3, (2, 3), 1, up=True, countsPadding=True)),
        case(
            "averagePool 3x3, border 1, not counted, rounded up", (6, 7, 3),
            pool("averagePool", 3, 2, 1, up=True, countsPadding=False)),
        case("globalAveragePool", (4, 5, 6), node("globalAveragePool")),
        case("globalMaxPool", (4, 5, 6), node("globalMaxPool")),
        case("globalMaxPool, equal values", (3, 3, 2), node("globalMaxPool"), images=spec(1, 0, 1)),
        case("dense", (1, 1, 7), dense(5), batch=3),
        case("dense, no bias", (1, 1, 20), dense(3, bias=False)),
        case("flatten and dense", (3, 2, 4), node("flatten", name="flat"), dense(5, inputs=["flat"])),
        case("batchNormalization, training", (4, 3, 5), norm(), batch=3, images=spec(1, 2, 3)),
        case("batchNormalization, momentum .3, epsilon .01", (2, 3, 3), norm(momentum=0.3, epsilon=0.01)),
        case("batchNormalization, vector", (1, 1, 6), norm(), batch=5),
        case("batchNormalization, running statistics", (4, 3, 5), norm(running=True)),
        case("batchNormalization, frozen", (4, 3, 5), norm(), frozen=["layer"]),
        case("relu", (3, 4, 3), node("relu")),
        case("relu at the kink", (2, 2, 3), node("relu"), images=spec(1, 0, 0)),
        case("relu6", (3, 4, 3), node("relu6"), images=spec(1, 20)),
        case("relu6 at the ceiling", (2, 2, 3), node("relu6"), images=spec(1, 0, 6)),
        case("leakyReLU", (3, 4, 3), node("leakyReLU", slope=0.1)),
        case("leakyReLU at the kink", (2, 2, 3), node("leakyReLU", slope=0.1), images=spec(1, 0, 0)),
        case("sigmoid", (3, 4, 3), node("sigmoid"), images=spec(1, 8)),
        case("sigmoid, far out", (2, 2, 3), node("sigmoid"), images=spec(1, 240)),
        case("hardSwish", (3, 4, 3), node("hardSwish"), images=spec(1, 10)),
        case("softmax", (1, 1, 5), node("softmax"), batch=4, images=spec(1, 6)),
        case("softmax of pixels, large values", (2, 2, 3), node("softmax"), images=spec(1, 20, 500)),
        case("clip", (3, 4, 3), node("clip", minimum=-0.25, maximum=0.5)),
        case("clip without a minimum", (3, 4, 3), node("clip", maximum=0.5)),
        case("clip without a maximum", (3, 4, 3), node("clip", minimum=-0.25)),
        case("clip at the maximum", (2, 2, 3), node("clip", minimum=0.0, maximum=1.5), images=spec(1, 0, 1.5)),
        case("hardSigmoid", (3, 4, 3), node("hardSigmoid", slope=1 / 6, offset=0.5), images=spec(1, 10)),
        case("hardSigmoid, slope .2", (3, 4, 3), node("hardSigmoid", slope=0.2, offset=0.5), images=spec(1, 10)),
        case("prelu", (3, 4, 5), node("prelu", isShared=False)),
        case("prelu, shared", (3, 4, 5), node("prelu", isShared=True)),
        case("elu", (3, 4, 3), node("elu", alpha=1.0), images=spec(1, 8)),
        case("elu, alpha .3", (3, 4, 3), node("elu", alpha=0.3), images=spec(1, 8)),
        case("swish", (3, 4, 3), node("swish"), images=spec(1, 16)),
        case("swish, far out", (2, 2, 3), node("swish"), images=spec(1, 240)),
        case("tanh", (3, 4, 3), node("tanh"), images=spec(1, 6)),
        case("softplus", (3, 4, 3), node("softplus"), images=spec(1, 30)),
        case("affine", (3, 4, 5), node("affine", extent="channels", hasScale=True, hasShift=True)),
        case("affine of values", (3, 4, 5), node("affine", extent="values", hasScale=True, hasShift=True), batch=3),
        case("affine, scale", (3, 4, 5), node("affine", extent="channels", hasScale=True, hasShift=False)),
        case("affine, shift", (3, 4, 5), node("affine", extent="values", hasScale=False, hasShift=True)),
        case("localResponseNormalization of 5", (2, 3, 9), response(5, alpha=1.0), images=spec(1, 6)),
        case("localResponseNormalization of 4", (2, 3, 9), response(4, 2.0, 0.5, 0.25), images=spec(1, 6)),
        case("localResponseNormalization, AlexNet's", (2, 3, 20), response(5, bias=2.0), images=spec(1, 200)),
        case("pad", (3, 4, 3), border(1, 2, 3, 0, {"constant": 0.5})),
        case("pad, reflect", (4, 5, 3), border(3, 2, 1, 4, "reflect")),
        case("pad, edge", (3, 4, 3), border(4, 2, 0, 5, "edge")),
        case("upsampleNearest", (3, 4, 3), node("upsampleNearest", factor=size(2))),
        case("upsampleNearest 3x1", (3, 4, 2), node("upsampleNearest", factor=size((3, 1)))),
        case("selectChannels", (3, 4, 8), node("selectChannels", channels=[{"from": 2, "count": 5}])),
        case("selectChannels, shuffled", (3, 4, 6), node("selectChannels", channels=[0, 3, 1, 4, 2, 5])),
        case("selectChannels, repeated", (3, 4, 4), node("selectChannels", channels=[3, {"from": 0, "count": 2}, 3, 1])),
        case("mean over height and width", (4, 5, 6), node("mean", axes=["height", "width"])),
        case("mean over width", (4, 5, 6), node("mean", axes=["width"])),
        case("mean over channels", (4, 5, 6), node("mean", axes=["channels"])),
        case("mean over height and channels", (4, 5, 6), node("mean", axes=["height", "channels"])),
        case(
            "squeeze and excitation", (4, 5, 6), convolution(6, 3, pad="same", name="x"),
            node("globalAveragePool", ["x"], "mean"), dense(3, name="less", inputs=["mean"]),
            node("swish", ["less"], "s"), dense(6, name="more", inputs=["s"]), node("sigmoid", ["more"], "gate"),
            node("multiply", ["x", "gate"])),
        case("multiply", (3, 4, 3), convolution(3, 1, name="left"), node("multiply", ["left", "input"])),
        case(
            "multiply a row, a column and a place", (3, 4, 5), node("mean", name="row", axes=["height"]),
            node("mean", name="column", axes=["width"]), node("mean", name="plane", axes=["channels"]),
            node("multiply", ["row", "column", "plane"]), images=spec(1, 2, 0.5)),
        case(
            "add a row, a column and a place", (3, 4, 5), node("mean", name="row", axes=["height"]),
            node("mean", name="column", axes=["width"]), node("mean", name="plane", axes=["channels"]),
            node("add", ["row", "column", "plane"])),
        case(
            "maximum of three", (3, 4, 3), convolution(3, 1, name="left"), convolution(3, 1, name="right"),
            node("maximum", ["left", "input", "right"])),
        case(
            "add of two", (3, 4, 3), convolution(4, 1, name="left"), convolution(4, 1, name="right"),
            node("add", ["left", "right"])),
        case(
            "add of three, two the same", (3, 4, 3), convolution(3, 1, name="left"), convolution(3, 1, name="right"),
            node("add", ["left", "input", "right"])),
        case(
            "concat of three", (3, 4, 3), convolution(2, 1, name="left"), convolution(5, 1, name="right"),
            node("concat", ["left", "input", "right"])),
        case(
            "residual block", (5, 4, 4), convolution(3, 1, bias=False, name="conv1"),
            norm(name="norm1", inputs=["conv1"]), node("relu", ["norm1"], "relu1"),
            convolution(4, 3, pad="same", bias=False, inputs=["relu1"], name="conv2"),
            norm(name="norm2", inputs=["conv2"]), node("add", ["norm2", "input"], "sum"), node("relu", ["sum"])),
    ]


# --- Loss ---

def loss_case(name, batch, classes, smoothing=0.0, weights=None, logits=None):
    logits = logits or spec(5, 6.0)
    labels = [(3 * i + i // 2 + 3) % classes for i in range(batch)]
    x = leaf(logits, [batch, classes])
    loss = F.cross_entropy(
        x, torch.tensor(labels), weight=None if weights is None else torch.tensor(weights, dtype=torch.float64),
        label_smoothing=smoothing)
    loss.backward()
    options = {"labelSmoothing": smoothing} | ({} if weights is None else {"classWeights": weights})
    return {
        "name": name, "batch": batch, "classes": classes, "labels": labels, "options": options, "logits": logits,
        "loss": rounded(loss)[0], "correct": int((x.argmax(dim=1) == torch.tensor(labels)).sum()),
        "gradient": rounded(x.grad)}


def loss_cases():
    weights = [0.5, 2.0, 1.0, 0.25, 3.0]
    return [
        loss_case("plain", 6, 5),
        loss_case("two labels", 7, 2),
        loss_case("one image", 1, 5),
        loss_case("label smoothing", 6, 5, smoothing=0.1),
        loss_case("class weights", 6, 5, weights=weights),
        loss_case("class weights, one of them 0", 6, 5, weights=[1.0, 0.0, 1.0, 2.0, 1.0]),
        loss_case("label smoothing and class weights", 6, 5, smoothing=0.1, weights=weights),
        loss_case("large logits", 6, 5, logits=spec(5, 200.0, 1000.0)),
    ]


# --- Optimizer ---

def sgd_case(name, factors=(1, 1, 1, 1, 1), rate=0.1, momentum=0.0, nesterov=False, decay=0.0, clipping=None):
    """Runs five steps on the weight [4, 3] and bias [3] of a dense layer; only the weight decays. Seeds 11 and 12 are for
    the parameters, 100 + step and 200 + step for the gradients of weight and bias."""
    shapes = {"layer.weight": [4, 3], "layer.bias": [3]}
    specs = {"layer.weight": spec(11), "layer.bias": spec(12)}
    w = {name: leaf(specs[name], shape) for name, shape in shapes.items()}
    groups = [
        {"params": [w["layer.weight"]], "weight_decay": decay}, {"params": [w["layer.bias"]], "weight_decay": 0.0}]
    optimizer = torch.optim.SGD(groups, lr=rate, momentum=momentum, nesterov=nesterov)
    gradients, norms = [], []
    for step, factor in enumerate(factors):
        gradients.append({"layer.weight": spec(100 + step, 20.0), "layer.bias": spec(200 + step, 20.0)})
        for parameter, values in w.items():
            values.grad = leaf(gradients[-1][parameter], shapes[parameter]).detach()
        norms.append(torch.nn.utils.clip_grad_norm_(w.values(), clipping or float("inf")))
        for group in optimizer.param_groups:
            group["lr"] = rate * factor
        optimizer.step()
    options = {"learningRate": rate, "momentum": momentum, "nesterov": nesterov, "weightDecay": decay}
    return {
        "name": name,
        "network": {"name": name, "input": {"height": 1, "width": 1, "channels": 4}, "nodes": [dense(3)]},
        "options": options | ({} if clipping is None else {"gradientClipping": clipping}),
        "factors": list(factors), "parameters": specs, "gradients": gradients,
        "gradientNorms": rounded(torch.stack(norms)),
        "result": {parameter: rounded(values) for parameter, values in w.items()}}


def sgd_cases():
    return [
        sgd_case("plain"),
        sgd_case("momentum", momentum=0.9),
        sgd_case("nesterov", momentum=0.9, nesterov=True),
        sgd_case("weight decay", decay=0.05),
        sgd_case("momentum and weight decay", momentum=0.9, decay=0.05),
        sgd_case("nesterov and weight decay", momentum=0.9, nesterov=True, decay=0.05),
        sgd_case("momentum under a schedule", factors=(0.25, 1, 0.5, 0.1, 0.05), momentum=0.9, decay=0.05),
        # The limit clips some of the gradients.
        sgd_case("momentum and clipping", momentum=0.9, clipping=22.0),
    ]


def write(path, sections):
    """Writes one line per case, so that diffs are short."""
    def lines(section):
        if not isinstance(section, list):
            return json.dumps(section)
        return "[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in section) + "\n]"

    text = "{\n" + ",\n".join(f"{json.dumps(name)}: {lines(section)}" for name, section in sections.items()) + "\n}\n"
    path.write_text(text)


if __name__ == "__main__":
    samples = [spec(0, 1.0), spec(1, 2.0, 0.25), spec(1007, 0.5, -1.0)]
    write(Path(__file__).with_name("layers.json"), {
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
        "formula": [s | {"values": tensor(s, [5]).astype(np.float64).tolist()} for s in samples],
        "layers": layer_cases(),
        "losses": loss_cases(),
        "sgd": sgd_cases(),
    })
