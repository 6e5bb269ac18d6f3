"""Makes small Core ML models with coremltools 9, and computes their expected outputs with NumPy: python3 make_coreml.py

The image has 9 rows and 8 columns; sample i of [rows, columns, (red, green, blue)] is 37 * i % 256.
"""

import json
import pathlib
import shutil

import coremltools as ct
import numpy as np
from coremltools.converters.mil import Builder as mb
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder, quantization_utils

FOLDER = pathlib.Path(__file__).parent / "CoreML"
HEIGHT, WIDTH, SCALE = 9, 8, 1 / 64
BIAS = np.array([-1.5, -2, -2.5], np.float32)  # red, green, blue
random = np.random.default_rng(7)


def random_values(*shape, around=0.0):
    # Multiples of 1/64, which float16 represents exactly.
    return (np.round(random.normal(size=shape) * 24) / 64 + around).astype(np.float32)


CONV = random_values(8, 3, 3, 3)
GROUPED = random_values(8, 4, 2, 2)
DENSE = random_values(3, 8)
DENSE_BIAS, CONV_BIAS = random_values(3), random_values(8)
GAMMA, BETA = random_values(8, around=1), random_values(8)
MEAN, VARIANCE = random_values(8), np.abs(random_values(8)) + 0.5
SLOPES = np.abs(random_values(8))


def image(is_bgr=False):
    samples = (np.arange(HEIGHT * WIDTH * 3) * 37 % 256).astype(np.float32).reshape(HEIGHT, WIDTH, 3)
    x = (samples * np.float32(SCALE) + BIAS).transpose(2, 0, 1)
    return x[::-1] if is_bgr else x


def same(length, kernel, stride):
    total = max((-(-length // stride) - 1) * stride + kernel - length, 0)
    return total // 2, total - total // 2


def convolve(x, weight, bias, stride, pads, groups=1):
    (top, bottom), (left, right) = pads
    x = np.pad(x, ((0, 0), (top, bottom), (left, right)))
    outputs, per_group, kh, kw = weight.shape
    height, width = (x.shape[1] - kh) // stride + 1, (x.shape[2] - kw) // stride + 1
    y = np.zeros((outputs, height, width))
    for o in range(outputs):
        first = o // (outputs // groups) * per_group
        for i in range(height):
            for j in range(width):
                part = x[first : first + per_group, i * stride : i * stride + kh, j * stride : j * stride + kw]
                y[o, i, j] = (part * weight[o]).sum() + bias[o]
    return y


def pool(x, kernel, stride, pads, function, rounds_up=False):
    (top, bottom), (left, right) = pads
    sizes = []
    for length, before, after in ((x.shape[1], top, bottom), (x.shape[2], left, right)):
        room = length + before + after - kernel
        size = (-(-room // stride) if rounds_up else room // stride) + 1
        if rounds_up and (size - 1) * stride >= length + before:
            size -= 1
        sizes.append(size)
    y = np.zeros((x.shape[0], *sizes))
    for i in range(sizes[0]):
        for j in range(sizes[1]):
            rows = slice(max(i * stride - top, 0), min(i * stride - top + kernel, x.shape[1]))
            columns = slice(max(j * stride - left, 0), min(j * stride - left + kernel, x.shape[2]))
            y[:, i, j] = function(x[:, rows, columns], (1, 2))
    return y


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def of_channels(values):
    return values[:, None, None]


def normalized(x):
    return (x - of_channels(MEAN)) / np.sqrt(of_channels(VARIANCE) + 1e-3) * of_channels(GAMMA) + of_channels(BETA)


def network(is_bgr):
    builder = NeuralNetworkBuilder(
        [("image", datatypes.Array(3, HEIGHT, WIDTH))],
        [("probabilities", datatypes.Array(3))],
        mode="classifier",
    )
    builder.add_convolution(
        "conv", 3, 8, 3, 3, 2, 2, "same", 1, W=CONV.transpose(2, 3, 1, 0), b=CONV_BIAS, has_bias=True,
        input_name="image", output_name="conv", same_padding_asymmetry_mode="TOP_LEFT_HEAVY",
    )
    builder.add_batchnorm("norm", 8, GAMMA, BETA, MEAN, VARIANCE, "conv", "norm", epsilon=1e-3)
    builder.add_activation("prelu", "PRELU", "norm", "prelu", SLOPES)
    builder.add_convolution(
        "grouped", 4, 8, 2, 2, 1, 1, "valid", 2, W=GROUPED.transpose(2, 3, 1, 0), b=None, has_bias=False,
        input_name="prelu", output_name="grouped", padding_top=1, padding_bottom=0, padding_left=0, padding_right=1,
    )
    builder.add_pooling(
        "pool", 3, 3, 2, 2, "MAX", "INCLUDE_LAST_PIXEL", "grouped", "pool", padding_top=1, padding_bottom=1,
        padding_left=1, padding_right=1,
    )
    builder.add_reduce("mean", "pool", "mean", "HW", "avg")
    builder.add_flatten("flat", 1, "mean", "flat")
    builder.add_inner_product("dense", DENSE, DENSE_BIAS, 8, 3, True, "flat", "dense")
    builder.add_softmax("softmax", "dense", "probabilities")
    builder.set_class_labels([7, 8, 9], prediction_blob="probabilities")
    builder.set_pre_processing_parameters(
        image_input_names=["image"], is_bgr=is_bgr, red_bias=float(BIAS[0]), green_bias=float(BIAS[1]),
        blue_bias=float(BIAS[2]), image_scale=SCALE,
    )
    x = convolve(image(is_bgr), CONV, CONV_BIAS, 2, [same(n, 3, 2)[::-1] for n in (HEIGHT, WIDTH)])
    x = normalized(x)
    x = np.where(x > 0, x, of_channels(SLOPES) * x)
    x = convolve(x, GROUPED, np.zeros(8), 1, [(1, 0), (0, 1)], groups=2)
    x = pool(x, 3, 2, [(1, 1), (1, 1)], np.max, rounds_up=True)
    return builder.spec, softmax(DENSE @ x.mean((1, 2)) + DENSE_BIAS)


def program(opset, precision, is_bgr):
    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 3, HEIGHT, WIDTH))], opset_version=opset)
    def build(image):
        x = mb.conv(x=image, weight=CONV, bias=CONV_BIAS, pad_type="same", strides=[2, 2])
        x = mb.relu6(x=x)
        x = mb.batch_norm(x=x, mean=MEAN, variance=VARIANCE, gamma=GAMMA, beta=BETA, epsilon=np.float32(1e-3))
        a, b = mb.split(x=x, num_splits=2, axis=1)
        x = mb.concat(values=[b, mb.mul(x=a, y=mb.sigmoid(x=a))], axis=1)
        x = mb.max_pool(x=x, kernel_sizes=[2, 2], strides=[2, 2], pad_type="custom", pad=[1, 0, 0, 0], ceil_mode=False)
        y = mb.conv(x=x, weight=GROUPED, pad_type="custom", pad=[1, 0, 0, 1], groups=2)
        y = mb.prelu(x=y, alpha=SLOPES)
        x = mb.add(x=x, y=y)
        x = mb.avg_pool(x=x, kernel_sizes=[2, 2], strides=[1, 1], pad_type="same", exclude_padding_from_average=True)
        x = mb.reduce_mean(x=x, axes=[2, 3], keep_dims=False)
        return mb.softmax(x=mb.linear(x=x, weight=DENSE, bias=DENSE_BIAS), axis=-1)

    color = ct.colorlayout.BGR if is_bgr else ct.colorlayout.RGB
    bias = BIAS[::-1] if is_bgr else BIAS
    model = ct.convert(
        build,
        inputs=[
            ct.ImageType("image", (1, 3, HEIGHT, WIDTH), scale=SCALE, bias=[float(b) for b in bias], color_layout=color)
        ],
        classifier_config=ct.ClassifierConfig(["a", "b", "c"]),
        minimum_deployment_target=opset,
        convert_to="mlprogram",
        compute_precision=precision,
    )
    x = convolve(image(is_bgr), CONV, CONV_BIAS, 2, [same(n, 3, 2) for n in (HEIGHT, WIDTH)])
    x = normalized(np.clip(x, 0, 6))
    x = np.concatenate([x[4:], x[:4] * sigmoid(x[:4])])
    x = pool(x, 2, 2, [(1, 0), (0, 0)], np.max)
    y = convolve(x, GROUPED, np.zeros(8), 1, [(1, 0), (0, 1)], groups=2)
    x = x + np.where(y > 0, y, of_channels(SLOPES) * y)
    x = pool(x, 2, 1, [same(n, 2, 1) for n in x.shape[1:]], np.mean)
    return model, softmax(DENSE @ x.mean((1, 2)) + DENSE_BIAS)


MATRIX, MATRIX_BIAS, OFFSETS = random_values(400, 4), random_values(1, 4), random_values(1, 3, 1, 1)


def operations():
    """The operations that the other program does not contain."""

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 3, HEIGHT, WIDTH))], opset_version=ct.target.iOS15)
    def build(image):
        x = mb.pad(x=image, pad=[1, 0, 0, 2], mode="reflect")
        x = mb.leaky_relu(x=x, alpha=np.float32(0.25))
        x = mb.silu(x=x)
        x = mb.real_div(x=mb.sub(x=x, y=OFFSETS), y=np.float32(2))
        x = mb.local_response_norm(x=x, size=3, alpha=np.float32(0.5), beta=np.float32(0.75), k=np.float32(1))
        x = mb.slice_by_index(x=x, begin=[0, 1, 0, 0], end=[0, 3, 0, 0], begin_mask=[True, False, True, True],
                              end_mask=[True, False, True, True])
        x = mb.upsample_nearest_neighbor(x=x, scale_factor_height=2, scale_factor_width=1)
        x = mb.clip(x=mb.maximum(x=x, y=np.float32(-0.5)), alpha=np.float32(-0.75), beta=np.float32(0.75))
        x = mb.flatten2d(x=mb.transpose(x=x, perm=[0, 2, 3, 1]), axis=1)
        x = mb.add(x=mb.matmul(x=x, y=MATRIX), y=MATRIX_BIAS)
        x = mb.elu(x=mb.mul(x=x, y=np.float32(0.125)), alpha=np.float32(0.5))
        x = mb.tanh(x=mb.expand_dims(x=x, axes=[2, 3]))
        x = mb.squeeze(x=mb.reduce_max(x=x, axes=[2, 3], keep_dims=True), axes=[2, 3])
        return mb.softmax(x=mb.reshape(x=x, shape=[1, -1]), axis=1)

    model = ct.convert(
        build,
        inputs=[ct.ImageType("image", (1, 3, HEIGHT, WIDTH), scale=SCALE, bias=[float(b) for b in BIAS])],
        classifier_config=ct.ClassifierConfig(["a", "b", "c", "d"]),
        minimum_deployment_target=ct.target.iOS15,
        convert_to="mlprogram",
        compute_precision=ct.precision.FLOAT32,
    )
    x = np.pad(image(), ((0, 0), (1, 0), (0, 2)), mode="reflect")
    x = np.where(x > 0, x, x / 4)
    x = (x * sigmoid(x) - OFFSETS[0]) / 2
    squares = np.pad(x * x, ((1, 1), (0, 0), (0, 0)))
    x = x / (1 + 0.5 / 3 * (squares[:-2] + squares[1:-1] + squares[2:])) ** 0.75
    x = x[1:3].repeat(2, axis=1)
    x = np.clip(np.maximum(x, -0.5), -0.75, 0.75).transpose(1, 2, 0).reshape(1, -1)
    x = (x @ MATRIX + MATRIX_BIAS)[0] / 8
    return model, softmax(np.tanh(np.where(x > 0, x, 0.5 * (np.exp(x) - 1))))


shutil.rmtree(FOLDER, ignore_errors=True)
FOLDER.mkdir()
expected = {}


def save(name, model, probabilities):
    path = FOLDER / name
    if name.endswith(".mlmodel"):
        path.write_bytes(model.SerializeToString())
    else:
        model.save(str(path))
    expected[name] = [float(p) for p in probabilities]


for is_bgr in (False, True):
    spec, probabilities = network(is_bgr)
    save("network-bgr.mlmodel" if is_bgr else "network-rgb.mlmodel", spec, probabilities)
    half = quantization_utils.quantize_weights(ct.models.MLModel(spec, skip_model_load=True), 16)
    if is_bgr:
        save("network-float16.mlmodel", half.get_spec() if hasattr(half, "get_spec") else half, probabilities)

save("operations.mlpackage", *operations())
save("program.mlpackage", *program(ct.target.iOS15, ct.precision.FLOAT32, False))
save("program-float16-bgr.mlpackage", *program(ct.target.iOS16, ct.precision.FLOAT16, True))
for name, configuration, compress in (
    ("program-linear8.mlpackage", ct.optimize.coreml.OpLinearQuantizerConfig(mode="linear", weight_threshold=8),
     ct.optimize.coreml.linear_quantize_weights),
    ("program-lookup4.mlpackage", ct.optimize.coreml.OpPalettizerConfig(mode="uniform", nbits=4, weight_threshold=8),
     ct.optimize.coreml.palettize_weights),
):
    model, _ = program(ct.target.iOS16, ct.precision.FLOAT32, False)
    kept = CONV, GROUPED, DENSE
    packed = compress(model, ct.optimize.coreml.OptimizationConfig(global_config=configuration))
    plain = ct.optimize.coreml.decompress_weights(packed)
    by_shape = {w.val.shape: w.val for w in ct.optimize.coreml.get_weights_metadata(plain, weight_threshold=1).values()}
    CONV, GROUPED, DENSE = (by_shape[k.shape].astype(np.float32) for k in kept)
    _, probabilities = program(ct.target.iOS16, ct.precision.FLOAT32, False)
    CONV, GROUPED, DENSE = kept
    save(name, packed, probabilities)

(FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
