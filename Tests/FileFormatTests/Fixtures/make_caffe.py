"""Makes small Caffe models, and computes their expected outputs with NumPy: python3 make_caffe.py

The script encodes the messages of caffe.proto itself, and the layers follow the code of Caffe. The image has 9 rows and
8 columns; sample i of [rows, columns, (red, green, blue)] is 37 * i % 256.
"""

import json
import pathlib
import shutil
import struct

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "Caffe"
HEIGHT, WIDTH = 9, 8
MEAN = np.array([96, 128, 160], np.float32)
random = np.random.default_rng(11)


def random_values(*shape, around=0.0, spread=0.5):
    return (np.round(random.normal(size=shape) * spread * 64) / 64 + around).astype(np.float32)


def image():
    """The normalized image in BGR, as OpenCV reads photos."""
    samples = (np.arange(HEIGHT * WIDTH * 3) * 37 % 256).astype(np.float32).reshape(HEIGHT, WIDTH, 3)
    return ((samples - MEAN) / 64).transpose(2, 0, 1)[::-1].astype(np.float64)


# Protobuf


def varint(value):
    result = b""
    while value >= 128:
        result, value = result + bytes([value & 127 | 128]), value >> 7
    return result + bytes([value])


def bytes_field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def text(number, value):
    return bytes_field(number, value.encode())


def integer(number, value):
    return varint(number << 3) + varint(value)


def blob(values, form="shape"):
    """A BlobProto, with its shape as a message or in four legacy fields, and its values packed, unpacked or 64-bit."""
    values = np.asarray(values, np.float32)
    if form == "legacy":
        lengths = (1,) * (4 - values.ndim) + values.shape
        head = b"".join(integer(index + 1, length) for index, length in enumerate(lengths))
    else:
        head = bytes_field(7, bytes_field(1, b"".join(varint(length) for length in values.shape)))
    if form == "single":
        return head + b"".join(varint(5 << 3 | 5) + struct.pack("<f", v) for v in values.flatten())
    if form == "double":
        return head + bytes_field(8, values.astype("<f8").tobytes())
    return head + bytes_field(5, values.astype("<f4").tobytes())


V1_TYPES = {"Convolution": 4, "InnerProduct": 14, "Pooling": 17, "ReLU": 18, "Softmax": 20}


def caffemodel(weights, form="shape", is_old=False):
    """A NetParameter with the weights of layers: {name: (type, [arrays])}."""
    result = text(1, "small")
    for name, (kind, arrays) in weights.items():
        if is_old:
            layer = text(4, name) + integer(5, V1_TYPES[kind])
            layer += b"".join(bytes_field(6, blob(a, form)) for a in arrays)
        else:
            layer = text(1, name) + text(2, kind) + b"".join(bytes_field(7, blob(a, form)) for a in arrays)
        result += bytes_field(2 if is_old else 100, layer)
    return result


# Layers


def convolve(x, weight, bias=None, stride=1, pad=0, dilation=1, group=1):
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    outputs, inputs, kh, kw = weight.shape
    rows = (x.shape[1] - (kh - 1) * dilation - 1) // stride + 1
    columns = (x.shape[2] - (kw - 1) * dilation - 1) // stride + 1
    y = np.zeros((outputs, rows, columns))
    for o in range(outputs):
        first = o // (outputs // group) * inputs
        for i in range(kh):
            for j in range(kw):
                part = x[first : first + inputs, i * dilation :: stride, j * dilation :: stride][:, :rows, :columns]
                y[o] += (part * weight[o, :, i, j][:, None, None]).sum(0)
    return y if bias is None else y + bias[:, None, None]


def pool(x, kernel, stride, pad, is_max, floors=False):
    """Pooling as in pooling_layer.cpp: output sizes are rounded up, and averages count the padding."""
    sizes = []
    for length in x.shape[1:]:
        room = (length + 2 * pad - kernel) / stride
        size = int(np.floor(room) if floors else np.ceil(room)) + 1
        if pad and (size - 1) * stride >= length + pad:
            size -= 1
        sizes.append(size)
    y = np.zeros((x.shape[0], *sizes))
    for i in range(sizes[0]):
        for j in range(sizes[1]):
            top, left = i * stride - pad, j * stride - pad
            bottom, right = min(top + kernel, x.shape[1] + pad), min(left + kernel, x.shape[2] + pad)
            count = (bottom - top) * (right - left)
            part = x[:, max(top, 0) : min(bottom, x.shape[1]), max(left, 0) : min(right, x.shape[2])]
            y[:, i, j] = part.max((1, 2)) if is_max else part.sum((1, 2)) / count
    return y


def response(x, size, alpha, beta, k):
    padded = np.pad(x**2, ((size // 2, size // 2), (0, 0), (0, 0)))
    sums = sum(padded[i : i + x.shape[0]] for i in range(size))
    return x / (k + alpha / size * sums) ** beta


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def relu(x, slope=0.0):
    return np.where(x > 0, x, x * slope)


def of_channels(values):
    return np.asarray(values, np.float64)[:, None, None]


# prototxt

INPUT = 'name: "small"\nlayer { name: "image" type: "Input" top: "image" input_param { shape: { dim: [1, 3, 9, 8] } } }\n'
OLD_INPUT = 'name: "small"\ninput: "image"\ninput_dim: 1\ninput_dim: 3\ninput_dim: 9\ninput_dim: 8\n'


def layer(name, kind, parameters="", bottom="image", top=None, word="layer"):
    bottoms = " ".join(f'bottom: "{b}"' for b in bottom.split())
    tops = " ".join(f'top: "{t}"' for t in (top or name).split())
    kind = kind if word == "layers" else f'"{kind}"'
    return f'{word} {{ name: "{name}" type: {kind} {bottoms} {tops} {parameters} }}\n'


def head(x, bottom, weights, word="layer"):
    """A dense layer over all elements, which gives logits of about 1, and a softmax."""
    flat = x.flatten()
    weight = (random.normal(size=(3, flat.size)) / np.linalg.norm(flat)).astype(np.float32)
    bias = random_values(3)
    weights["head"] = ("InnerProduct", [weight, bias])
    kinds = ("INNER_PRODUCT", "SOFTMAX") if word == "layers" else ("InnerProduct", "Softmax")
    lines = layer("head", kinds[0], "inner_product_param { num_output: 3 }", bottom, word=word)
    return lines + layer("probabilities", kinds[1], bottom="head", word=word), softmax(weight @ flat + bias)


# Each function returns a prototxt, the weights of layers, the expected output, and the options for the weight file.


def one(line, y, arrays=None, kind=None, **options):
    """A network of one layer, named "layer", and a head."""
    weights = {"layer": (kind, arrays)} if arrays else {}
    rest, expected = head(y, "layer", weights)
    return INPUT + line + rest, weights, expected, options


def stored(form):
    x, weight, bias = image(), random_values(4, 3, 3, 2), random_values(4)
    line = layer(
        "layer", "Convolution",
        "convolution_param { num_output: 4 kernel_h: 3 kernel_w: 2 stride: 2 pad: 1 dilation: 1 }")
    return one(line, convolve(x, weight, bias, 2, 1), [weight, bias], "Convolution", form=form)


def version_1():
    """Layers in the old format, with types in capitals, legacy shapes and a legacy input."""
    x, weight, bias, weights = image(), random_values(4, 3, 3, 3), random_values(4), {}
    y = relu(convolve(x, weight, bias, 2))
    weights["conv"] = ("Convolution", [weight, bias])
    rest, expected = head(y, "conv", weights, word="layers")
    lines = layer(
        "conv", "CONVOLUTION", "blobs_lr: 1 convolution_param { num_output: 4 kernel_size: 3 stride: 2 }",
        word="layers")
    lines += layer("relu", "RELU", bottom="conv", top="conv", word="layers")
    return OLD_INPUT + lines + rest, weights, expected, {"is_old": True, "form": "legacy"}


def new_net_of_old_weights():
    prototxt, weights, expected, options = stored("legacy")
    return prototxt, weights, expected, {"is_old": True, "form": "legacy"}


def norm():
    """Statistics that are accumulated sums, followed by a scale; all layers work in place."""
    x, weight = image(), random_values(4, 3, 3, 3)
    mean, variance = random_values(4), np.abs(random_values(4)) + 0.5
    gamma, beta = random_values(4, around=1), random_values(4)
    y = convolve(x, weight, pad=1)
    y = (y - of_channels(mean)) / np.sqrt(of_channels(variance) + 1e-4) * of_channels(gamma) + of_channels(beta)
    y = relu(y, 0.1)
    weights = {
        "conv": ("Convolution", [weight]),
        "norm": ("BatchNorm", [mean * 8, variance * 8, np.array([8.0])]),
        "scale": ("Scale", [gamma, beta]),
    }
    rest, expected = head(y, "conv", weights)
    lines = layer(
        "conv", "Convolution",
        'convolution_param { num_output: 4 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "xavier" } }')
    lines += layer("norm", "BatchNorm", "batch_norm_param { use_global_stats: true eps: 1e-4 }", "conv", "conv")
    lines += layer("scale", "Scale", "scale_param { bias_term: true }", "conv", "conv")
    lines += layer("relu", "ReLU", "relu_param { negative_slope: 0.1 }", "conv", "conv")
    lines += layer("drop", "Dropout", "dropout_param { dropout_ratio: 0.4 }", "conv", "conv")
    return INPUT + lines + rest, weights, expected, {}


def norm_of_nothing():
    """A scale factor of 0 makes mean and variance 0."""
    x = image()
    line = layer("layer", "BatchNorm", "batch_norm_param { eps: 0.5 }")
    arrays = [random_values(3), random_values(3), np.array([0.0])]
    return one(line, x / np.sqrt(0.5), arrays, "BatchNorm")


def pools():
    x, parts, lines, tops = image(), [], "", []
    for kind in ("MAX", "AVE"):
        for kernel, stride, pad, floors in [(3, 2, 1, False), (2, 2, 1, False), (4, 3, 1, False), (3, 2, 1, True)]:
            name = f"{kind.lower()}{len(tops)}"
            mode = " round_mode: FLOOR" if floors else ""
            parameters = f"kernel_size: {kernel} stride: {stride} pad: {pad}{mode}"
            lines += layer(name, "Pooling", f"pooling_param {{ pool: {kind} {parameters} }}")
            y = pool(x, kernel, stride, pad, kind == "MAX", floors)
            lines += layer(f"flat{len(tops)}", "Flatten", bottom=name)
            parts.append(y.flatten())
            tops.append(f"flat{len(tops)}")
    lines += layer("layer", "Concat", bottom=" ".join(tops))
    return one(lines, np.concatenate(parts))


def uneven_pools():
    """Pools that round up without padding, so that the last windows are clipped."""
    x = image()
    lines = layer("max", "Pooling", "pooling_param { pool: MAX kernel_size: 3 stride: 2 }")
    lines += layer("layer", "Pooling", "pooling_param { pool: AVE kernel_h: 2 kernel_w: 3 stride_h: 2 stride_w: 2 }", "max")
    y = pool(x, 3, 2, 0, True)
    rows, columns = y.shape[1:]
    z = np.zeros((3, -(-(rows - 2) // 2) + 1, -(-(columns - 3) // 2) + 1))
    for i in range(z.shape[1]):
        for j in range(z.shape[2]):
            z[:, i, j] = y[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 3].mean((1, 2))
    return one(lines, z)


def global_pools():
    x = image()
    lines = layer("max", "Pooling", "pooling_param { pool: MAX global_pooling: true }")
    lines += layer("mean", "Pooling", "pooling_param { pool: AVE global_pooling: true }")
    lines += layer("layer", "Concat", "concat_param { axis: 1 }", "max mean")
    return one(lines, np.concatenate([x.max((1, 2)), x.mean((1, 2))]))


def eltwise():
    x, first, second, weights = image(), random_values(3, 3, 1, 1), random_values(3, 3, 1, 1), {}
    a, b = convolve(x, first), convolve(x, second)
    weights["a"], weights["b"] = ("Convolution", [first]), ("Convolution", [second])
    parameters = "convolution_param { num_output: 3 kernel_size: 1 bias_term: false }"
    lines = layer("a", "Convolution", parameters) + layer("b", "Convolution", parameters)
    lines += layer("sum", "Eltwise", "eltwise_param { operation: SUM coeff: 0.5 coeff: -2 }", "a b")
    lines += layer("product", "Eltwise", "eltwise_param { operation: PROD }", "sum a")
    lines += layer("greatest", "Eltwise", "eltwise_param { operation: MAX }", "product b image")
    lines += layer("layer", "Eltwise", bottom="greatest a")
    y = np.maximum(np.maximum((0.5 * a - 2 * b) * a, b), x) + a
    rest, expected = head(y, "layer", weights)
    return INPUT + lines + rest, weights, expected, {}


def power():
    return one(layer("layer", "Power", "power_param { scale: 0.25 shift: -0.5 }"), 0.25 * image() - 0.5)


def lrn():
    line = layer("layer", "LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.6 k: 2 }")
    return one(line, response(image(), 3, 0.5, 0.6, 2))


def prelu(is_shared):
    slopes = random_values(1 if is_shared else 3)
    line = layer("layer", "PReLU", "prelu_param { channel_shared: true }" if is_shared else "")
    return one(line, relu(image(), of_channels(slopes)), [slopes[0] if is_shared else slopes], "PReLU")


def curves():
    x, lines = image(), ""
    for name, kind, parameters in [
        ("sigmoid", "Sigmoid", ""), ("tanh", "TanH", ""), ("elu", "ELU", "elu_param { alpha: 0.5 }"),
        ("clip", "Clip", "clip_param { min: -0.5 max: 1 }"), ("bias", "Bias", ""),
    ]:
        lines += layer(name, kind, parameters)
    lines += layer("layer", "Concat", bottom="sigmoid tanh elu clip bias")
    shift = random_values(3)
    y = [1 / (1 + np.exp(-x)), np.tanh(x), np.where(x > 0, x, 0.5 * (np.exp(x) - 1)), np.clip(x, -0.5, 1)]
    y = np.concatenate(y + [x + of_channels(shift)])
    weights = {"bias": ("Bias", [shift])}
    rest, expected = head(y, "layer", weights)
    return INPUT + lines + rest, weights, expected, {}


def slices():
    x, weight, weights = image(), random_values(6, 3, 1, 1), {}
    weights["conv"] = ("Convolution", [weight])
    y = convolve(x, weight)
    lines = layer("conv", "Convolution", "convolution_param { num_output: 6 kernel_size: 1 bias_term: false }")
    lines += layer("cut", "Slice", "slice_param { axis: 1 slice_point: 1 slice_point: 3 }", "conv", "one two three")
    lines += layer("halves", "Slice", "", "conv", "left right")
    lines += layer("split", "Split", "", "right", "right_1 right_2")
    lines += layer("layer", "Concat", bottom="three right_1 one left two right_2")
    z = np.concatenate([y[3:], y[3:], y[:1], y[:3], y[1:3], y[3:]])
    rest, expected = head(z, "layer", weights)
    return INPUT + lines + rest, weights, expected, {}


def groups():
    x, first, second, bias, weights = image(), random_values(6, 1, 3, 3), random_values(4, 3, 2, 2), random_values(4), {}
    weights["first"], weights["second"] = ("Convolution", [first]), ("Convolution", [second, bias])
    lines = layer(
        "first", "Convolution",
        "convolution_param { num_output: 6 kernel_size: 3 group: 3 pad: 2 dilation: 2 bias_term: false }")
    lines += layer(
        "second", "Convolution",
        "convolution_param { num_output: 4 kernel_h: 2 kernel_w: 2 stride_h: 2 stride_w: 2 group: 2 }", "first")
    y = convolve(convolve(x, first, pad=2, dilation=2, group=3), second, bias, 2, group=2)
    rest, expected = head(y, "second", weights)
    return INPUT + lines + rest, weights, expected, {}


def phases():
    """Layers only for training: layers with phase rules, losses, and data."""
    x = image()
    lines = 'layer { name: "data" type: "Data" top: "image" top: "label" include { phase: TRAIN } }\n'
    lines += layer("noise", "Power", "power_param { scale: 9 } include { phase: TRAIN }", "image", "image")
    lines += layer("stage", "Power", 'power_param { scale: 9 } include { stage: "deploy" }', "image", "image")
    lines += layer("test", "Power", "power_param { scale: 0.5 } include: { phase: TEST }", "image", "image")
    lines += layer("out", "Power", "power_param { scale: 9 } exclude { phase: TEST }", "image", "image")
    lines += layer("layer", "Power", "power_param { shift: 1 } exclude { phase: TRAIN }")
    prototxt, weights, expected, options = one(lines, 0.5 * x + 1)
    prototxt += layer("loss", "SoftmaxWithLoss", "include { phase: TRAIN }", "head label")
    prototxt += layer("accuracy", "Accuracy", "", "head label")
    return prototxt, weights, expected, options


def transposed():
    x = image().flatten()
    weight = (random.normal(size=(3, x.size)) / np.linalg.norm(x)).astype(np.float32)
    parameters = "inner_product_param { num_output: 3 bias_term: false transpose: true }"
    lines = layer("dense", "InnerProduct", parameters) + layer("probabilities", "Softmax", bottom="dense")
    return INPUT + lines, {"dense": ("InnerProduct", [weight.T])}, softmax(weight @ x), {}


def reshaped():
    x, weight, weights = image(), random_values(6, 3, 1, 1), {}
    weights["conv"] = ("Convolution", [weight])
    y = convolve(x, weight)
    lines = layer("conv", "Convolution", "convolution_param { num_output: 6 kernel_size: 1 bias_term: false }")
    lines += layer("same", "Reshape", "reshape_param { shape { dim: 0 dim: 6 dim: -1 dim: 8 } }", "conv")
    rest, expected = head(y, "same", weights)
    return INPUT + lines + rest, weights, expected, {}


FIXTURES = {
    "packed": lambda: stored("shape"),
    "single": lambda: stored("single"),
    "double": lambda: stored("double"),
    "legacy": lambda: stored("legacy"),
    "version-1": version_1,
    "version-1-weights": new_net_of_old_weights,
    "norm": norm,
    "norm-of-nothing": norm_of_nothing,
    "pools": pools,
    "uneven-pools": uneven_pools,
    "global-pools": global_pools,
    "eltwise": eltwise,
    "power": power,
    "lrn": lrn,
    "prelu": lambda: prelu(False),
    "prelu-shared": lambda: prelu(True),
    "curves": curves,
    "slices": slices,
    "groups": groups,
    "phases": phases,
    "transposed": transposed,
    "reshaped": reshaped,
}


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    expected = {}
    for name, make in FIXTURES.items():
        prototxt, weights, y, options = make()
        (FOLDER / f"{name}.prototxt").write_text(prototxt)
        (FOLDER / f"{name}.caffemodel").write_bytes(caffemodel(weights, **options))
        expected[name] = [round(float(value), 8) for value in y]
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    for file in FOLDER.iterdir():
        assert file.stat().st_size < 20_000, file


main()
