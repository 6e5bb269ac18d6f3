"""Runs quantized models in ONNX Runtime, for QuantizedPythonTests.

    check_quantized.py run FOLDER            writes the outputs of model.onnx, and prints the dequantized weights of model.mlmodel as JSON
    check_quantized.py quantize FOLDER TYPE  quantizes float.onnx to model.onnx with activations of TYPE, and writes its outputs

The folder contains images (float32, channels first) and shape.json. Needs: pip install numpy onnx onnxruntime coremltools.
"""

import json
import pathlib
import sys

import numpy
import onnx
import onnxruntime

folder = pathlib.Path(sys.argv[2])
images = numpy.fromfile(folder / "images", numpy.float32).reshape(json.loads((folder / "shape.json").read_text()))


def run(path):
    onnx.checker.check_model(str(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    outputs = [session.run(None, {name: image[None]})[0].reshape(-1) for image in images]
    numpy.concatenate(outputs).astype(numpy.float32).tofile(folder / "outputs")


def core_ml_weights(path):
    """The weights that coremltools dequantizes, by layer."""
    import coremltools
    from coremltools.models.neural_network.quantization_utils import _dequantize_linear

    found = {}
    for layer in coremltools.utils.load_spec(str(path)).neuralNetworkClassifier.layers:
        kind = layer.WhichOneof("layer")
        if kind not in ("convolution", "innerProduct"):
            continue
        weights = getattr(layer, kind).weights
        if not weights.rawValue:
            continue
        quantization = weights.quantization
        assert quantization.numberOfBits == 8
        outputs = len(quantization.linearQuantization.scale)
        codes = numpy.frombuffer(weights.rawValue, numpy.uint8).reshape(outputs, -1)
        scale, bias = (
            numpy.array(values, numpy.float32)
            for values in (quantization.linearQuantization.scale, quantization.linearQuantization.bias)
        )
        found[layer.name] = _dequantize_linear(codes, scale, bias, axis=0).reshape(-1).tolist()
    return found


def quantize(activations):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.images = iter(images)

        def get_next(self):
            image = next(self.images, None)
            return None if image is None else {"input": image[None]}

    model = onnx.load(folder / "float.onnx")
    # Other programs write no metadata of Imprint.
    del model.metadata_props[:]
    onnx.save(model, folder / "plain.onnx")
    # Optimized graphs have no batch normalization.
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    onnxruntime.InferenceSession(str(folder / "plain.onnx"), options, providers=["CPUExecutionProvider"])
    types = {"uint8": QuantType.QUInt8, "int8": QuantType.QInt8}
    # Weights of 7 bits: without AVX512-VNNI, ONNX Runtime adds products of 8 bits in 16-bit integers, which overflow.
    quantize_static(
        folder / "optimized.onnx", folder / "model.onnx", Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
        activation_type=types[activations], weight_type=QuantType.QInt8,
        reduce_range=True)


if sys.argv[1] == "quantize":
    quantize(sys.argv[3])
    run(folder / "model.onnx")
else:
    run(folder / "model.onnx")
    print(json.dumps(core_ml_weights(folder / "model.mlmodel")))
