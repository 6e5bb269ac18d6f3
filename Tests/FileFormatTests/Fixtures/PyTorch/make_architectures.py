"""Writes architectures.json: the parameter names, shapes and logits of image classifiers in PyTorch.

    python make_architectures.py [FOLDER]

Needs torch, torchvision and timm. FOLDER contains the unpacked package efficientnet-lite-pytorch; without it, the cases of that
package are kept from the existing file. The parameters come from a formula that the Swift tests repeat, so the file has only names,
shapes and logits. The logits are computed with 64-bit floating-point numbers.
"""

import json
import math
import pathlib
import sys

import numpy
import timm
import torch
import torchvision

# The number of values that repeat in each tensor: a prime, so that rows of a tensor differ.
PERIOD = 4093
HEIGHT, WIDTH, CLASSES = 64, 48, 10
MASK = (1 << 64) - 1


def uniform(index):
    """A value in -1...1 from SplitMix64, exact in 32 bits."""
    z = (index + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    z ^= z >> 31
    return (z >> 41) * 2.0**-22 - 1


TABLE = numpy.array([uniform(index) for index in range(PERIOD)], dtype=numpy.float32)


def values(name, count, scale, offset):
    """Repeats the table, beginning at an index that depends on the tensor's name: scale * u + offset."""
    start = 0
    for byte in name.encode():
        start = (start * 31 + byte) % PERIOD
    table = numpy.roll(TABLE, -start) * numpy.float32(scale) + numpy.float32(offset)
    return numpy.resize(table, count)


def parameter(name, shape, is_norm, gain):
    """The values of a tensor; `gain` is the variance of a weight times its inputs, so that logits depend on the image."""
    count = math.prod(shape)
    kind = name.rsplit(".", 1)[1]
    if kind == "running_mean":
        flat = values(name, count, 0.25, 0)
    elif kind == "running_var":
        flat = values(name, count, 0.5, 1)
    elif kind == "bias":
        flat = values(name, count, 0.25, 0)
    elif is_norm:
        flat = values(name, count, 0.25, 1)
    else:
        flat = values(name, count, math.sqrt(3 * gain / math.prod(shape[1:])), 0)
    return torch.from_numpy(flat.reshape(shape).copy())


def modules(model):
    """The modules with parameters in a compact form: name, shape of the weight, and "+" for a bias or "n" for a batch norm."""
    state = model.state_dict()
    found = []
    for key, tensor in state.items():
        if not key.endswith(".weight"):
            continue
        name = key.removesuffix(".weight")
        suffix = "n" if f"{name}.running_mean" in state else "+" if f"{name}.bias" in state else ""
        found.append(f"{name} {'x'.join(map(str, tensor.shape))}{suffix}")
    return found


def case(architecture, flavour, model):
    """One case with the logits of two images."""
    model = model.eval()
    state = {}
    # Swish and squeeze-and-excitation reduce the variance more than ReLU does; with 3, rounding errors grow to 1e-3.
    gain = 2.3 if "efficientnet-b0" in architecture else 2
    for key, tensor in model.state_dict().items():
        if key.endswith("num_batches_tracked"):
            state[key] = tensor
            continue
        is_norm = key.rsplit(".", 1)[0] + ".running_mean" in model.state_dict()
        state[key] = parameter(key, tuple(tensor.shape), is_norm, gain)
    model.load_state_dict(state)
    model = model.double()
    logits = []
    for name in ["image 1", "image 2"]:
        image = values(name, HEIGHT * WIDTH * 3, 1, 0).reshape(1, HEIGHT, WIDTH, 3)
        with torch.no_grad():
            logits.append(model(torch.from_numpy(image).double().permute(0, 3, 1, 2))[0].tolist())
    largest = max(map(abs, logits[0]))
    change = max(abs(a - b) for a, b in zip(*logits)) / largest
    print(f"{architecture} {flavour}: largest logit {largest:.3g}, change between images {change:.3g}")
    assert math.isfinite(largest) and change > 0.01
    return {
        "architecture": architecture, "flavour": flavour, "gain": gain, "modules": modules(model),
        "logits": [[float(f"{value:.7g}") for value in image] for image in logits],
    }


def main():
    file = pathlib.Path(__file__).parent / "architectures.json"
    zoo, cases = torchvision.models, []
    for ours, theirs in [
        ("resnet-18", zoo.resnet18), ("resnet-34", zoo.resnet34), ("resnet-50", zoo.resnet50),
        ("mobilenet-v2", zoo.mobilenet_v2), ("mobilenet-v3-small", zoo.mobilenet_v3_small),
        ("mobilenet-v3-large", zoo.mobilenet_v3_large), ("efficientnet-b0", zoo.efficientnet_b0),
        ("squeezenet-1.0", zoo.squeezenet1_0), ("squeezenet-1.1", zoo.squeezenet1_1),
    ]:
        cases.append(case(ours, "torchvision", theirs(num_classes=CLASSES)))
    lite = [(f"{tf}efficientnet-lite{n}", f"{tf.replace('-', '_')}efficientnet_lite{n}") for n in range(5) for tf in ["", "tf-"]]
    for ours, theirs in [
        ("resnet-18", "resnet18"), ("resnet-50", "resnet50"), ("mobilenet-v2", "mobilenetv2_100"),
        ("mobilenet-v3-small", "mobilenetv3_small_100"), ("mobilenet-v3-large", "mobilenetv3_large_100"),
        ("tf-mobilenet-v3-small", "tf_mobilenetv3_small_100"), ("tf-mobilenet-v3-large", "tf_mobilenetv3_large_100"),
        ("efficientnet-b0", "efficientnet_b0"), ("tf-efficientnet-b0", "tf_efficientnet_b0"), *lite,
    ]:
        cases.append(case(ours, "timm", timm.create_model(theirs, num_classes=CLASSES)))
    if len(sys.argv) > 1:
        sys.path.insert(0, sys.argv[1])
        from efficientnet_lite_pytorch import EfficientNet

        for name in ["efficientnet-b0", *(f"efficientnet-lite{n}" for n in range(5))]:
            # The package fixes the padding for the image size.
            model = EfficientNet.from_name(name, num_classes=CLASSES, image_size=[HEIGHT, WIDTH])
            cases.append(case(name, "efficientnet-pytorch", model))
    else:
        cases += [known for known in json.loads(file.read_text())["cases"] if known["flavour"] == "efficientnet-pytorch"]
    contents = {"height": HEIGHT, "width": WIDTH, "table": [float(value) for value in TABLE[:3]], "cases": cases}
    file.write_text(json.dumps(contents, separators=(",", ":")).replace('{"architecture"', '\n{"architecture"') + "\n")


if __name__ == "__main__":
    main()
