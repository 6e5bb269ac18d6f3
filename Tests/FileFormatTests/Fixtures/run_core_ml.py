"""Runs a Core ML neural network in NumPy as NeuralNetwork.proto specifies, for check_exports.py and run_exported_detectors.py.

It implements only the specification, independently of Imprint. Arrays are [images, channels, height, width].
"""

import numpy


def values_of(weights):
    if weights.float16Value:
        return numpy.frombuffer(weights.float16Value, "<f2").astype(numpy.float64)
    return numpy.array(weights.floatValue, numpy.float64)


def amounts(borders):
    pairs = [(b.startEdgeSize, b.endEdgeSize) for b in borders.borderAmounts] or [(0, 0), (0, 0)]
    return [(0, 0), (0, 0), *pairs]


def windows(x, kernel, stride, dilation=(1, 1)):
    """[images, channels, rows, columns, kernel height, kernel width]"""
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    views = numpy.lib.stride_tricks.sliding_window_view(x, reach, axis=(2, 3))
    return views[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def convolution(p, x):
    groups, kernel = p.nGroups or 1, tuple(p.kernelSize)
    weights = values_of(p.weights).reshape(groups, p.outputChannels // groups, p.kernelChannels, *kernel)
    assert p.WhichOneof("ConvolutionPaddingType") == "valid" and not p.isDeconvolution
    views = windows(numpy.pad(x, amounts(p.valid.paddingAmounts)), kernel, p.stride, p.dilationFactor)
    views = views.reshape(len(x), groups, -1, *views.shape[2:])
    y = numpy.einsum("ngcijhw,gochw->ngoij", views, weights, optimize=True)
    y = y.reshape(len(x), p.outputChannels, *y.shape[3:])
    return y + values_of(p.bias)[:, None, None] if p.hasBias else y


def pooling(p, x):
    if p.globalPooling:
        return x.max((2, 3), keepdims=True) if p.type == 0 else x.mean((2, 3), keepdims=True)
    assert p.WhichOneof("PoolingPaddingType") == "valid"
    borders, size = amounts(p.valid.paddingAmounts), (tuple(p.kernelSize), tuple(p.stride))
    if p.type == 0:
        return windows(numpy.pad(x, borders, constant_values=-numpy.inf), *size).max((4, 5))
    sums = windows(numpy.pad(x, borders), *size).sum((4, 5))
    if not p.avgPoolExcludePadding:
        return sums / numpy.prod(p.kernelSize)
    return sums / windows(numpy.pad(numpy.ones_like(x), borders), *size).sum((4, 5))


def activation(p, x):
    kind = p.WhichOneof("NonlinearityType")
    q = getattr(p, kind)
    if kind == "linear":
        return q.alpha * x + q.beta
    if kind == "PReLU":
        return numpy.where(x > 0, x, values_of(q.alpha)[:, None, None] * x)
    return {
        "ReLU": lambda: numpy.maximum(x, 0),
        "leakyReLU": lambda: numpy.where(x > 0, x, q.alpha * x),
        "tanh": lambda: numpy.tanh(x),
        "sigmoid": lambda: 1 / (1 + numpy.exp(-x)),
        "sigmoidHard": lambda: numpy.clip(q.alpha * x + q.beta, 0, 1),
        "ELU": lambda: numpy.where(x > 0, x, q.alpha * numpy.expm1(numpy.minimum(x, 0))),
        "softplus": lambda: numpy.logaddexp(x, 0),
    }[kind]()


def inner_product(p, x):
    y = x.reshape(len(x), -1) @ values_of(p.weights).reshape(p.outputChannels, p.inputChannels).T
    return (y + values_of(p.bias) if p.hasBias else y)[:, :, None, None]


def batchnorm(p, x):
    gamma, beta, mean, variance = (values_of(w)[:, None, None] for w in (p.gamma, p.beta, p.mean, p.variance))
    assert len(gamma) == p.channels
    return (x - mean) / numpy.sqrt(variance + (p.epsilon or 1e-5)) * gamma + beta


def softmax(p, x):
    powers = numpy.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def shaped(weights, shape):
    return values_of(weights).reshape(*shape, *[1] * (3 - len(shape)))


def scale(p, x):
    y = x * shaped(p.scale, p.shapeScale)
    return y + shaped(p.bias, p.shapeBias) if p.hasBias else y


def unary(p, x):
    if p.type == 4:  # EXP
        return numpy.exp(p.shift + p.scale * x)
    assert p.type == 7  # THRESHOLD
    return numpy.maximum((p.scale or 1) * x + p.shift, p.alpha)


def lrn(p, x):
    half, squares = p.localSize // 2, x * x
    assert p.localSize % 2 == 1
    padded = numpy.pad(squares, [(0, 0), (half, half), (0, 0), (0, 0)])
    sums = sum(padded[:, k : k + x.shape[1]] for k in range(p.localSize))
    return x / ((p.k or 1) + p.alpha / p.localSize * sums) ** p.beta


def padding(p, x):
    kind = p.WhichOneof("PaddingType")
    if kind == "constant":
        return numpy.pad(x, amounts(p.paddingAmounts), constant_values=p.constant.value)
    return numpy.pad(x, amounts(p.paddingAmounts), mode={"reflection": "reflect", "replication": "edge"}[kind])


def upsample(p, x):
    assert p.mode == 0  # NN
    return x.repeat(p.scalingFactor[0], 2).repeat(p.scalingFactor[1], 3)


def reduce(p, x):
    assert p.mode == 1  # AVG
    return x.mean([(1, 2, 3), (2, 3), 1, 2, 3][p.axis], keepdims=True)


def flatten(p, x):
    x = x.transpose(0, 2, 3, 1) if p.mode == 1 else x
    return x.reshape(len(x), -1, 1, 1)


def slice_(p, x):
    assert p.axis == 0 and p.stride in (0, 1)
    return x[:, p.startIndex : p.endIndex]


def check_broadcast(inputs):
    """Checks that the inputs have the shapes that add and multiply of version 1 can broadcast."""
    whole = max((x.shape[1:] for x in inputs), key=numpy.prod)
    c, h, w = whole
    assert all(x.shape[1:] in [whole, (c, 1, 1), (1, h, w), (1, 1, 1)] for x in inputs), [x.shape for x in inputs]


def add(p, *inputs):
    check_broadcast(inputs)
    return sum(inputs[1:], inputs[0])


def multiply(p, *inputs):
    check_broadcast(inputs)
    y = inputs[0]
    for x in inputs[1:]:
        y = y * x
    return y


def maximum(p, *inputs):
    assert len({x.shape for x in inputs}) == 1
    return numpy.maximum.reduce(inputs)


def matrix_product(p, x, y):
    assert not p.transposeA and not p.hasBias
    return x @ (y.swapaxes(-1, -2) if p.transposeB else y)


LAYERS = {
    "convolution": convolution,
    "pooling": pooling,
    "activation": activation,
    "innerProduct": inner_product,
    "batchnorm": batchnorm,
    "softmax": softmax,
    "lrn": lrn,
    "padding": padding,
    "upsample": upsample,
    "unary": unary,
    "add": add,
    "multiply": multiply,
    "scale": scale,
    "bias": lambda p, x: x + shaped(p.bias, p.shape),
    "max": maximum,
    "reduce": reduce,
    "flatten": flatten,
    "concat": lambda p, *inputs: numpy.concatenate(inputs, 1),
    "slice": slice_,
    "addBroadcastable": lambda p, x, y: x + y,
    "multiplyBroadcastable": lambda p, x, y: x * y,
    "clip": lambda p, x: numpy.clip(x, p.minVal, p.maxVal),
    "greaterEqual": lambda p, x, y: (x >= y).astype(numpy.float64),
    "concatND": lambda p, *inputs: numpy.concatenate(inputs, p.axis),
    "transpose": lambda p, x: x.transpose(tuple(p.axes)),
    "batchedMatmul": matrix_product,
    "loadConstantND": lambda p: values_of(p.data).reshape(tuple(p.shape)),
    "reshapeStatic": lambda p, x: x.reshape(tuple(p.targetShape)),
    "reduceMax": lambda p, x: x.max(tuple(p.axes), keepdims=p.keepDims),
}


def confidences(spec, samples):
    """The confidences of a neuralNetworkClassifier for RGB or grey images [images, height, width, channels], 0…255."""
    network = spec.neuralNetworkClassifier
    return outputs(spec, network, samples)[network.labelProbabilityLayerName]


def outputs(spec, network, samples):
    """The outputs by name of all layers of the network of a model, for images as in confidences()."""
    image = spec.description.input[0].type.imageType
    grey = image.colorSpace == 10
    assert samples.shape[1:] == (image.height, image.width, 1 if grey else 3)
    assert grey or image.colorSpace == 20
    scaler = network.preprocessing[0].scaler
    biases = [scaler.grayBias] if grey else [scaler.redBias, scaler.greenBias, scaler.blueBias]
    x = samples.transpose(0, 3, 1, 2) * scaler.channelScale + numpy.array(biases)[:, None, None]
    values = {network.preprocessing[0].featureName: x}
    for layer in network.layers:
        kind = layer.WhichOneof("layer")
        y = LAYERS[kind](getattr(layer, kind), *[values[name] for name in layer.input])
        assert y.dtype == numpy.float64
        values[layer.output[0]] = y
    return values
