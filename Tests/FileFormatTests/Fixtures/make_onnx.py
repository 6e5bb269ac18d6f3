"""Makes small ONNX models, and computes their expected outputs with ONNX Runtime: python3 make_onnx.py

The image has 9 rows and 8 columns; sample i of [rows, columns, (red, green, blue)] is 37 * i % 256.
Written with onnx 1.23.2 and onnxruntime 1.31.1.
"""

import json
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent / "ONNX"
HEIGHT, WIDTH, LABELS = 9, 8, 3
MEAN = np.array([96, 128, 160], np.float32)
random = np.random.default_rng(9)
FLOAT, HALF, INT = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64


def random_values(*shape, around=0.0, spread=0.5):
    # Multiples of 1/64, which float16 represents exactly.
    return (np.round(random.normal(size=shape) * spread * 64) / 64 + around).astype(np.float32)


def image():
    samples = (np.arange(HEIGHT * WIDTH * 3) * 37 % 256).astype(np.float32).reshape(HEIGHT, WIDTH, 3)
    return ((samples - MEAN) / 64)[None]


class Model:
    """A graph that is built node by node; `x` is the name of the last output."""

    def __init__(self, opset=13, channels_last=False, batch=1):
        self.opset, self.channels_last, self.batch = opset, channels_last, batch
        self.nodes, self.initializers, self.inputs, self.x, self.shape = [], [], [], "image", None

    def constant(self, values, name=None, raw=True):
        name = name or f"c{len(self.initializers)}"
        values = np.asarray(values)
        if raw:
            tensor = numpy_helper.from_array(values, name)
        else:
            kind = helper.np_dtype_to_tensor_dtype(values.dtype)
            tensor = helper.make_tensor(name, kind, values.shape, values.flatten().tolist())
        self.initializers.append(tensor)
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def add(self, kind, *others, x=None, count=1, name=None, domain=None, **attributes):
        """Adds a node that reads the last output, and the names or constants in `others`."""
        inputs = [o if isinstance(o, str) else self.constant(o) for o in ((x or self.x,) + others)]
        return self.node(kind, inputs, count, name, domain, **attributes)

    def node(self, kind, inputs, count=1, name=None, domain=None, **attributes):
        name = name or f"n{len(self.nodes)}"
        outputs = [name if count == 1 else f"{name}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=name, domain=domain, **attributes))
        self.x = outputs[0]
        return outputs[0] if count == 1 else outputs

    def conv(self, outputs, inputs, kernel, group=1, bias=True, **attributes):
        others = [random_values(outputs, inputs // group, *kernel)] + ([random_values(outputs)] if bias else [])
        return self.add("Conv", *others, group=group, kernel_shape=kernel, **attributes)

    def proto(self, output=None):
        shape = [HEIGHT, WIDTH, 3] if self.channels_last else [3, HEIGHT, WIDTH]
        inputs = [helper.make_tensor_value_info("image", FLOAT, [self.batch] + shape)] + self.inputs
        outputs = [helper.make_tensor_value_info(output or self.x, FLOAT, None)]
        graph = helper.make_graph(self.nodes, "small", inputs, outputs, self.initializers)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8, producer_name="make_onnx.py")
        return onnx.shape_inference.infer_shapes(model)

    def head(self):
        """Adds a product of all elements with a matrix, which gives logits of about 1."""
        x = run(self.proto(), self.channels_last)
        self.add("Flatten")
        weight = random.normal(size=(x.size, LABELS)) / np.linalg.norm(x)
        self.add("MatMul", weight.astype(np.float32), name="logits")
        return self


def run(model, channels_last=False, path=None):
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    # Run the graph without optimizations.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        path or model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = image() if channels_last else image().transpose(0, 3, 1, 2)
    return session.run(None, {"image": np.ascontiguousarray(x)})[0]


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


# Each function returns a model and the kind of its output; without a kind, the output is "logits".


def clip_attributes():
    m = Model(6)
    m.conv(4, 3, [3, 3])
    m.add("Clip", min=-0.5, max=0.75)
    return m.head()


def initializers_in_inputs():
    m = Model(9)
    m.conv(4, 3, [3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    m.add(
        "BatchNormalization", random_values(4, around=1), random_values(4), random_values(4),
        np.abs(random_values(4)) + 0.5, epsilon=1e-3)
    m.add("Relu")
    m.head()
    m.inputs = [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in m.initializers]
    return m


def opset_11():
    m = Model(11)
    m.add("Pad", m.ints(0, 0, 1, 0, 0, 0, 0, 2), np.float32(0.25), mode="constant")
    m.conv(4, 3, [2, 3], strides=[1, 2])
    m.add("Clip", np.float32(-0.25), "")
    m.add("GlobalAveragePool")
    m.add("Squeeze", axes=[2, 3])
    m.add("Gemm", random_values(4, LABELS), random_values(LABELS))
    m.add("Unsqueeze", axes=[2])
    m.add("Softmax", axis=1)  # over all axes from this one on
    return m, "probabilities"


def opset_13():
    m = Model(13)
    m.conv(4, 3, [3, 3], dilations=[2, 1])
    m.add("Pad", m.ints(0, 0, 1, 1, 0, 0, 0, 1), mode="reflect")
    m.add("Clip", np.float32(0), np.float32(6))
    m.add("ReduceMean", axes=[2, 3], keepdims=1)
    m.add("Squeeze", m.ints(2, 3))
    m.add("Gemm", random_values(LABELS, 4, spread=1), random_values(LABELS), transB=1)
    m.add("Softmax")
    return m, "probabilities"


def opset_18():
    m = Model(18)
    m.add("Pad", m.ints(1, 2), "", m.ints(-2), mode="edge")
    m.conv(6, 3, [3, 3])
    first, second, third = m.add("Split", axis=1, num_outputs=3, count=3)
    m.node("Concat", [third, first, second], axis=1)
    m.add("ReduceMean", m.ints(-1, -2), keepdims=0)
    m.add("Unsqueeze", m.ints(-1))
    return m.head()


def opset_22():
    m = Model(22)
    m.conv(4, 3, [3, 3], auto_pad="SAME_UPPER", strides=[2, 2])
    m.add("HardSwish")
    m.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    m.add("Dropout", np.float32(0.3))
    return m.head()


def stored_as(change):
    """A model whose weights are not raw float32 data."""
    m = Model(13)
    weight, bias = change(m, random_values(4, 3, 3, 3), "weight"), change(m, random_values(4), "bias")
    m.node("Conv", ["image", weight, bias])
    return m.head()


def float_data(m, values, name):
    return m.constant(values, name, raw=False)


def half_bits(m, values, name):
    bits = values.astype(np.float16).view(np.uint16).flatten().tolist()
    m.initializers.append(TensorProto(name=name, data_type=HALF, dims=values.shape, int32_data=bits))
    return m.node("Cast", [name], to=FLOAT)


def half_raw(m, values, name):
    return m.node("Cast", [m.constant(values.astype(np.float16), name)], to=FLOAT)


def bfloat_bits(m, values, name):
    bits = (np.round(values * 8) / 8).astype(np.float32).view(np.uint32).flatten() >> 16
    m.initializers.append(
        TensorProto(name=name, data_type=TensorProto.BFLOAT16, dims=values.shape, int32_data=bits.tolist()))
    return m.node("Cast", [name], to=FLOAT)


def bfloat_raw(m, values, name):
    bits = (np.round(values * 8) / 8).astype(np.float32).view(np.uint32) >> 16
    m.initializers.append(
        TensorProto(
            name=name, data_type=TensorProto.BFLOAT16, dims=values.shape, raw_data=bits.astype("<u2").tobytes()))
    return m.node("Cast", [name], to=FLOAT)


def double_data(m, values, name):
    return m.node("Cast", [m.constant(values.astype(np.float64), name, raw=False)], to=FLOAT)


def double_raw(m, values, name):
    return m.node("Cast", [m.constant(values.astype(np.float64), name)], to=FLOAT)


def constant_nodes(m, values, name):
    return m.node("Constant", [], value=numpy_helper.from_array(values, name))


def transposed_weights(m, values, name):
    """Weights in TensorFlow's channels-last layout, which the graph transposes."""
    if values.ndim < 4:
        return m.constant(values, name)
    return m.node("Transpose", [m.constant(values.transpose(2, 3, 1, 0).copy(), name)], perm=[3, 2, 0, 1])


def constant_values():
    m = Model(13)
    m.conv(4, 3, [3, 3])
    x = m.x
    factor = m.node("Constant", [], value_float=0.75)
    m.add("Mul", factor, x=x)
    x = m.x
    low, high = m.node("Constant", [], value_float=-0.5), m.node("Constant", [], value_float=1.5)
    m.add("Clip", low, high, x=x)
    x = m.x
    x = m.add("Add", m.node("Constant", [], value_floats=[0.5] * 6), x=x)
    m.add("Reshape", m.node("Constant", [], value_ints=[1, -1]), x=x)
    return m.head()


def gemm(is_transposed):
    m = Model(13)
    m.conv(5, 3, [3, 3])
    m.add("GlobalMaxPool")
    m.add("Flatten")
    weight = random_values(LABELS, 5) if is_transposed else random_values(5, LABELS)
    m.add("Gemm", weight, random_values(1, LABELS), alpha=0.5, beta=2.0, transB=int(is_transposed), name="logits")
    return m


def same(side):
    m = Model(13)
    m.conv(4, 3, [2, 4], strides=[2, 1], auto_pad=side)
    m.add("MaxPool", kernel_shape=[2, 2], strides=[1, 1], auto_pad=side)
    m.conv(4, 4, [3, 2], auto_pad=side)
    m.add("AveragePool", kernel_shape=[2, 4], strides=[1, 3], auto_pad=side)
    return m.head()


def ceil_pools():
    m = Model(19)
    m.conv(4, 3, [1, 1])
    x = m.x
    pools = [
        m.add("MaxPool", x=x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1),
        m.add("AveragePool", x=x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1),
        m.add(
            "AveragePool", x=x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1,
            count_include_pad=1),
    ]
    m.node("Concat", pools, axis=1)
    return m.head()


def padded_pools():
    m = Model(11)
    m.conv(4, 3, [1, 1])
    x = m.x
    pools = [
        m.add("AveragePool", x=x, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 2, 1], count_include_pad=1),
        m.add("AveragePool", x=x, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 2, 1]),
        m.add("MaxPool", x=x, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 2, 1]),
    ]
    m.node("Concat", pools, axis=1)
    return m.head()


def grouped():
    m = Model(13)
    m.conv(6, 3, [3, 3], group=3, pads=[1, 1, 1, 1])
    m.conv(6, 6, [3, 3], group=6, strides=[2, 2], pads=[0, 1, 1, 0], bias=False)
    m.conv(4, 6, [2, 2], group=2)
    return m.head()


def channels_last():
    """A channels-last graph, as TensorFlow converters write it."""
    m = Model(13, channels_last=True, batch="unk__1")
    m.add("Transpose", perm=[0, 3, 1, 2])
    m.conv(4, 3, [3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    m.add("Transpose", perm=[0, 2, 3, 1])
    m.add("Add", random_values(4))
    m.add("Mul", random_values(1, 1, 1, 4))
    m.add("Relu")
    x = m.x
    m.add("ReduceMean", x=x, axes=[1, 2], keepdims=1)
    m.add("Sigmoid")
    m.node("Mul", [x, m.x])
    m.add("MatMul", random_values(4, 3))  # over the channels of each pixel
    m.add("Reshape", m.ints(-1, 5 * 4 * 3))
    m.add("MatMul", random_values(60, LABELS, spread=0.2))
    m.add("Add", random_values(LABELS), name="logits")
    return m


def written_norm():
    """Batch normalization as arithmetic, with statistics that the graph computes."""
    m = Model(13)
    m.conv(4, 3, [3, 3])
    x = m.x
    mean, variance = m.constant(random_values(4, 1, 1)), m.constant(np.abs(random_values(4, 1, 1)) + 0.5)
    m.add("Add", np.float32(1e-3), x=variance)
    root = m.add("Sqrt")
    factor = m.add("Reciprocal")
    m.add("Sub", mean, x=x)
    m.add("Mul", factor)
    m.add("Mul", random_values(4, 1, 1, around=1))
    x = m.add("Add", random_values(1, 4, 1, 1))
    m.add("Sub", mean, x=x)
    m.add("Div", root)
    m.add("Relu")
    return m.head()


def shape_chain():
    """Flattening as old PyTorch versions export it, and a Pad with computed amounts."""
    m = Model(13, batch="batch")
    m.conv(4, 3, [3, 3])
    x = m.x
    zeros = m.add("ConstantOfShape", x=m.ints(4), value=helper.make_tensor("zero", INT, [1], [0]))
    amounts = m.node("Concat", [m.ints(1, 2, 0, 1), zeros], axis=0)
    m.add("Reshape", m.ints(-1, 2), x=amounts)
    m.add("Slice", m.ints(-1), m.ints(-(1 << 40)), m.ints(0), m.ints(-1))
    m.add("Transpose", perm=[1, 0])
    m.add("Reshape", m.ints(-1))
    amounts = m.add("Cast", to=INT)
    m.add("Pad", amounts, np.float32(0), x=x)
    x = m.x
    shape = m.add("Shape")
    batch = m.add("Gather", np.array(0, np.int64), x=shape, axis=0)
    rest = [m.add("Gather", np.array(i, np.int64), x=shape, axis=0) for i in (1, 2, 3)]
    product = m.node("Mul", [m.node("Mul", rest[:2]), rest[2]])
    half = m.node("Floor", [m.node("Div", [m.node("Cast", [product], to=FLOAT), m.constant(np.float32(2))])])
    double = m.node("Mul", [m.node("Cast", [half], to=INT), m.ints(2)])
    first = m.node("Unsqueeze", [batch, m.ints(0)])
    m.node("Reshape", [x, m.node("Concat", [first, double], axis=0)])
    return m.head()


def shuffle():
    m = Model(13, batch="batch")
    m.conv(6, 3, [3, 3])
    m.add("Reshape", m.ints(-1, 2, 3, 7, 6))
    m.add("Transpose", perm=[0, 2, 1, 3, 4])
    m.add("Reshape", m.ints(-1, 6, 7, 6))
    m.conv(6, 6, [3, 3], group=3)
    m.add("Reshape", m.ints(0, 3, 2, 5, 4))
    m.add("Transpose", perm=[0, 2, 1, 3, 4])
    m.add("Reshape", m.ints(0, -1, 5, 4))
    return m.head()


def activations():
    m = Model(14)
    parts = []
    for kind, attributes in [
        ("LeakyRelu", {"alpha": 0.3}), ("LeakyRelu", {}), ("Elu", {"alpha": 0.5}), ("HardSigmoid", {}),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}), ("HardSwish", {}), ("Softplus", {}), ("Tanh", {}),
        ("Sigmoid", {}), ("Relu", {}), ("Neg", {}),
    ]:
        parts.append(m.add(kind, x="image", **attributes))
    parts.append(m.add("PRelu", random_values(3, 1, 1), x="image"))
    parts.append(m.node("Mul", ["image", m.add("Sigmoid", x="image")]))
    parts.append(m.node("Mul", [m.add("HardSigmoid", x="image", alpha=1 / 6, beta=0.5), "image"]))
    parts.append(m.add("Max", np.float32(-0.5), x="image"))
    parts.append(m.add("Min", np.float32(0.5), x="image"))
    m.node("Concat", parts, axis=1)
    m.conv(4, 48, [1, 1])
    return m.head()


def arithmetic():
    m = Model(13)
    first, second = m.conv(4, 3, [3, 3]), m.add("Conv", random_values(4, 3, 3, 3), x="image")
    third = m.add("Conv", random_values(4, 3, 3, 3), x="image")
    m.node("Sum", [first, second, third])
    m.node("Sub", [m.x, second])
    m.node("Max", [m.x, third])
    m.node("Sub", [m.constant(random_values(4, 1, 1)), m.x])
    m.node("Mul", [m.x, m.constant(random_values(7, 1))])
    m.add("Div", np.abs(random_values(1, 4, 1, 6)) + 1)
    scale = m.add("GlobalAveragePool")
    m.add("Mul", first, x=scale)
    m.add("Mul", m.constant(np.float32(0.1)))
    return m.head()


def channels():
    m = Model(13)
    m.conv(6, 3, [3, 3])
    x = m.x
    parts = m.add("Split", m.ints(1, 2, 3), x=x, axis=1, count=3)
    parts.append(m.add("Slice", m.ints(-1), m.ints(-4), m.ints(1), m.ints(-2), x=x))
    parts.append(m.add("Gather", np.array([3, -6, 0], np.int64), x=x, axis=1))
    m.node("Concat", parts[::-1], axis=1)
    m.add("LRN", size=5, alpha=0.5, beta=0.6, bias=2.0)
    m.add("Identity")
    m.add("ReduceMean", axes=[1], keepdims=0)
    return m.head()


def enlarged():
    m = Model(13)
    m.conv(3, 3, [3, 3], strides=[2, 2])
    m.add("Resize", "", np.array([1, 1, 2, 3], np.float32), mode="nearest", nearest_mode="floor",
          coordinate_transformation_mode="asymmetric")
    m.conv(2, 3, [3, 2], strides=[2, 2])
    m.add("Resize", "", "", m.ints(1, 2, 6, 12), mode="nearest")
    return m.head()


def upsampled():
    m = Model(9)
    m.conv(3, 3, [3, 3], strides=[3, 3])
    m.add("Upsample", np.array([1, 1, 2, 2], np.float32), mode="nearest")
    return m.head()


def transposed():
    m = Model(11)
    m.conv(6, 3, [3, 3], strides=[2, 2])
    m.add("ConvTranspose", random_values(6, 2, 3, 2), random_values(4), group=2, strides=[2, 3], pads=[1, 0, 0, 2],
          output_padding=[1, 2], dilations=[2, 1], kernel_shape=[3, 2])
    m.add("Relu")
    m.add("ConvTranspose", random_values(4, 1, 4, 4), group=4, strides=[2, 2], pads=[1, 1, 1, 1])
    m.add("ConvTranspose", random_values(4, 5, 1, 1), x=m.add("GlobalAveragePool"))
    return m.head()


def transposed_sizes():
    """Transposed convolutions that specify the output size instead of the padding."""
    m = Model(11)
    m.conv(3, 3, [3, 3], strides=[3, 3])
    x = m.x
    parts = [
        m.add("ConvTranspose", random_values(3, 2, 4, 4), x=x, strides=[3, 3], output_shape=[7, 4]),
        m.add(
            "ConvTranspose", random_values(3, 2, 4, 4), x=x, strides=[3, 3], output_shape=[7, 4], auto_pad="SAME_UPPER"),
        m.add("ConvTranspose", random_values(3, 2, 4, 3), x=x, strides=[3, 2], auto_pad="SAME_UPPER"),
        m.add("ConvTranspose", random_values(3, 2, 4, 3), x=x, strides=[3, 2], auto_pad="SAME_LOWER"),
        m.add("ConvTranspose", random_values(3, 2, 3, 2), x=x, strides=[3, 2], auto_pad="VALID"),
    ]
    m.node("Concat", [m.add("Flatten", x=part) for part in parts], axis=1)
    return m.head()


def written_layer_norm():
    """Decomposed layer normalizations as before opset 17: over the last axis, the second axis, and all elements."""
    m = Model(13)

    def normalize(axes, square, epsilon):
        x = m.x
        difference = m.node("Sub", [x, m.add("ReduceMean", x=x, axes=axes)])
        squared = m.node("Mul", [difference] * 2) if square == "Mul" else m.add("Pow", np.float32(2), x=difference)
        variance = m.add("ReduceMean", x=squared, axes=axes)
        m.node("Div", [difference, m.add("Sqrt", x=m.add("Add", np.float32(epsilon), x=variance))])

    m.conv(5, 3, [3, 3], strides=[2, 2])
    m.add("Transpose", perm=[0, 2, 3, 1])
    normalize([-1], "Pow", 1e-6)
    m.add("Mul", random_values(5, around=1))
    m.add("Add", random_values(5))
    m.add("Transpose", perm=[0, 3, 1, 2])
    m.conv(4, 5, [1, 1])
    normalize([1], "Mul", 0.5)
    m.add("Mul", random_values(4, 1, 1, around=1))
    m.conv(3, 4, [2, 2])
    normalize([1, 2, 3], "Pow", 1e-5)
    m.add("Add", random_values(3, 1, 1))
    return m.head()


def gathered_axes():
    """A Gather that reshapes an axis into several, as torch.export writes as_strided."""
    m = Model(13)
    m.conv(6, 3, [3, 3])
    m.add("GlobalAveragePool")
    m.add("Reshape", m.ints(-1))
    m.add("Gather", np.arange(6, dtype=np.int64)[::-1].reshape(1, 6, 1, 1).copy(), axis=0)
    m.conv(4, 6, [1, 1])
    return m.head()


def sigmoid_map():
    """An output that is a score map [channels, height, width]."""
    m = Model(13)
    m.conv(2, 3, [3, 3], strides=[3, 3])
    m.add("Sigmoid")
    return m, "probabilities"


def sigmoid_flat():
    m = sigmoid_map()[0]
    m.add("Flatten")
    return m, "probabilities"


def log_softmax():
    m = Model(13)
    m.conv(4, 3, [3, 3])
    m.head()
    m.add("LogSoftmax", axis=1)
    return m, "logarithms"


def one_logit():
    m = Model(13)
    m.conv(1, 3, [3, 3])
    m.add("GlobalAveragePool")
    m.add("Flatten")
    return m, "logit"


def single_pixel():
    """Feature maps of one pixel, whose axes of length 1 are ambiguous: channels last, and back."""
    m = Model(13)
    m.conv(5, 3, [3, 3])
    m.add("GlobalAveragePool")
    m.add("Transpose", perm=[0, 2, 3, 1])
    # The second axis is the height.
    m.add(
        "BatchNormalization", random_values(1, around=1), random_values(1), random_values(1),
        np.abs(random_values(1)) + 0.5)
    m.add("MatMul", random_values(5, 4))
    m.add("Add", random_values(4))
    m.add("Transpose", perm=[0, 3, 1, 2])
    x = m.x
    m.add("Pad", m.ints(0, 0, 0, 1, 0, 0, 2, 0))
    m.conv(4, 4, [2, 2])
    m.add("Mul", x)
    m.add("Softmax", axis=1)
    return m.head()


def single_axes():
    """A row of pixels, a single channel as the last axis, constants with more axes than the tensor, and joined axes."""
    m = Model(11)
    m.conv(3, 3, [9, 1])
    rows = m.add("Transpose", perm=[0, 2, 3, 1])
    m.add("ReduceMean", x=rows, axes=[3], keepdims=1)
    one = m.add("MatMul", random_values(1, 3))
    m.node("Concat", [rows, one], axis=3)
    m.add("Softmax", axis=1)
    m.add("Mul", np.float32(8))
    m.add("Transpose", perm=[0, 3, 1, 2])
    m.add("Flatten")
    m.add("Add", random_values(1, 1, 48))
    m.add("Squeeze", axes=[0])
    return m.head()


def gelu():
    m = Model(20)
    parts = [m.add("Gelu", x="image"), m.add("Gelu", x="image", approximate="tanh"), m.add("Erf", x="image")]
    root, one, half = np.float32(2**0.5), np.float32(1), np.float32(0.5)
    gate = m.add("Add", one, x=m.add("Erf", x=m.add("Div", root, x="image")))
    # Three equivalent decompositions.
    parts.append(m.add("Mul", half, x=m.node("Mul", ["image", gate])))
    parts.append(m.node("Mul", [m.add("Mul", half, x=gate), "image"]))
    parts.append(m.node("Mul", [m.add("Div", np.float32(2), x="image"), gate]))
    # Almost a GELU.
    parts.append(m.node("Mul", [m.add("Add", half, x=gate), "image"]))
    m.node("Concat", parts, axis=1)
    m.conv(4, 21, [1, 1])
    return m.head()


def layer_norm():
    m = Model(17)
    m.conv(4, 3, [3, 3])
    m.add("LayerNormalization", random_values(4, 7, 6, around=1), random_values(4, 7, 6), axis=1)
    m.add("Reshape", m.ints(0, 4, 7, 6))
    m.add("LayerNormalization", random_values(168, around=1), x=m.add("Flatten"), epsilon=0.5)
    return m.head()


def layer_norm_broadcast():
    """Scales and shifts that are broadcast along channels, rows and columns."""
    m = Model(17)
    m.conv(4, 3, [3, 3])
    m.add("Flatten", x=m.add("LayerNormalization", random_values(4, 1, 1, around=1), random_values(1, 7, 1), axis=1))
    m.add("Reshape", m.ints(0, 4, 7, 6))
    m.add("Flatten", x=m.add("LayerNormalization", random_values(6, around=1), random_values(1, 1, 7, 6), axis=1))
    return m.head()


def layer_norm_pixel(m, channels):
    m.add("Transpose", perm=[0, 2, 3, 1])
    m.add("LayerNormalization", random_values(channels, around=1), random_values(channels), axis=-1, epsilon=1e-6)


def convnext():
    """Two ConvNeXt blocks as torch.onnx exports them, and the head."""
    m = Model(17)
    m.conv(6, 3, [2, 2], strides=[2, 2])
    layer_norm_pixel(m, 6)
    m.add("Transpose", perm=[0, 3, 1, 2])
    for _ in range(2):
        shortcut = m.x
        m.conv(6, 6, [3, 3], group=6, pads=[1, 1, 1, 1])
        layer_norm_pixel(m, 6)
        m.node("Add", [m.constant(random_values(8)), m.add("MatMul", random_values(6, 8))])
        x = m.x
        m.add("Erf", x=m.add("Div", np.float32(2**0.5)))
        m.node("Mul", [x, m.add("Add", np.float32(1))])
        m.add("Mul", np.float32(0.5))
        m.node("Add", [m.constant(random_values(6)), m.add("MatMul", random_values(8, 6))])
        m.add("Transpose", perm=[0, 3, 1, 2])
        m.node("Mul", [m.constant(random_values(6, 1, 1)), m.x])
        m.node("Add", [m.x, shortcut])
    m.add("GlobalAveragePool")
    layer_norm_pixel(m, 6)
    m.add("Transpose", perm=[0, 3, 1, 2])
    m.add("Flatten")
    m.add("Gemm", random_values(LABELS, 6), random_values(LABELS), transB=1)
    return m


FIXTURES = {
    "clip-opset-6": clip_attributes,
    "initializers-in-inputs-opset-9": initializers_in_inputs,
    "opset-11": opset_11,
    "opset-13": opset_13,
    "opset-18": opset_18,
    "opset-22": opset_22,
    "float-data": lambda: stored_as(float_data),
    "float16-int32-data": lambda: stored_as(half_bits),
    "float16-raw": lambda: stored_as(half_raw),
    "bfloat16-int32-data": lambda: stored_as(bfloat_bits),
    "bfloat16-raw": lambda: stored_as(bfloat_raw),
    "double-data": lambda: stored_as(double_data),
    "double-raw": lambda: stored_as(double_raw),
    "constant-nodes": lambda: stored_as(constant_nodes),
    "turned-weights": lambda: stored_as(transposed_weights),
    "constant-values": constant_values,
    "gemm": lambda: gemm(False),
    "gemm-turned": lambda: gemm(True),
    "same-upper": lambda: same("SAME_UPPER"),
    "same-lower": lambda: same("SAME_LOWER"),
    "ceil-pools": ceil_pools,
    "padded-pools": padded_pools,
    "grouped": grouped,
    "channels-last": channels_last,
    "written-norm": written_norm,
    "shape-chain": shape_chain,
    "shuffle": shuffle,
    "activations": activations,
    "arithmetic": arithmetic,
    "channels": channels,
    "enlarged": enlarged,
    "upsampled": upsampled,
    "sigmoid-map": sigmoid_map,
    "sigmoid-flat": sigmoid_flat,
    "log-softmax": log_softmax,
    "one-logit": one_logit,
    "single-pixel": single_pixel,
    "single-axes": single_axes,
    "gelu": gelu,
    "layer-norm": layer_norm,
    "convnext": convnext,
    "written-layer-norm": written_layer_norm,
    "gathered-axes": gathered_axes,
    "transposed": transposed,
    "transposed-sizes": transposed_sizes,
    "layer-norm-broadcast": layer_norm_broadcast,
}
# Models that the importer rejects, because they do not output one score for each label.
MAPS = {"sigmoid-map"}


def unsupported():
    """A model with two operators that Imprint does not support."""
    m = Model(13)
    m.conv(4, 3, [3, 3])
    m.add("InstanceNormalization", random_values(4), random_values(4), name="instance")
    m.add("Relu")
    m.node("ArgMax", [m.x], name="arg")
    return m.proto()


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    expected = {}
    for name, make in FIXTURES.items():
        made = make()
        model, kind = made if isinstance(made, tuple) else (made, "logits")
        proto = model.proto()
        y = run(proto, model.channels_last)
        value = helper.make_tensor_value_info(proto.graph.output[0].name, FLOAT, (model.batch,) + y.shape[1:])
        proto.graph.output[0].CopyFrom(value)
        onnx.checker.check_model(proto)
        onnx.save(proto, FOLDER / f"{name}.onnx")
        y = y.flatten().astype(np.float64)
        if name in MAPS:
            continue
        y = {"logits": softmax, "probabilities": lambda x: x, "logarithms": np.exp, "logit": lambda x: 1 / (1 + np.exp(-x))}[kind](y)
        expected[f"{name}.onnx"] = [round(float(value), 8) for value in y]
    # A model with external weights.
    proto = grouped().proto()
    onnx.save(
        proto, FOLDER / "external.onnx", save_as_external_data=True, location="external.bin", size_threshold=0)
    y = run(None, path=str(FOLDER / "external.onnx")).flatten().astype(np.float64)
    expected["external.onnx"] = [round(float(value), 8) for value in softmax(y)]
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    onnx.save(unsupported(), FOLDER / "unsupported.onnx")
    for file in FOLDER.iterdir():
        assert file.stat().st_size < 20_000, file


main()
