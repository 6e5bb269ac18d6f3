"""quantize.py PEER MODEL FILE quantizes an ONNX file to int8 as the documentation of the peer recommends.

PEER is onnxruntime, which writes an ONNX file, or openvino, which writes an .xml and a .bin file. The calibration images are random, with the
distribution of the images that runtimes_peer.py measures. The script prints the cosine similarity of the outputs in int8 and in float32, and
fails without writing FILE if it is below 0.9 for an image.
"""

import os
import pathlib
import sys
import tempfile

from measure import missing

CALIBRATION_IMAGES = 100
CHECK_IMAGES = 10
LOWEST_SIMILARITY = 0.9


def input_of(model):
    """Returns the name and shape of the input of an ONNX file, and whether it takes the samples 0 to 255 of a detector of Imprint."""
    import onnx

    model = onnx.load(model, load_external_data=False)
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    image = next(value for value in graph.input if value.name not in weights)
    is_detector = any(entry.key == "imprint.spotting" for entry in model.metadata_props)
    return image.name, [dimension.dim_value or 1 for dimension in image.type.tensor_type.shape.dim], is_detector


def random_batch(generator, shape, is_detector):
    """Returns random images with a normal distribution, or for a detector with uniform samples from 0 to 255."""
    import numpy

    return generator.integers(0, 256, shape).astype(numpy.float32) if is_detector else generator.standard_normal(shape, numpy.float32)


def random_batches(shape, is_detector, count, seed):
    """Returns `count` images or a few more, because the last batch is complete."""
    import numpy

    generator = numpy.random.default_rng(seed)
    return [random_batch(generator, shape, is_detector) for _ in range(0, count, shape[0])]


class ONNXRuntime:
    @staticmethod
    def quantize(model, name, batches, file, is_detector):
        from onnxruntime import quantization
        from onnxruntime.quantization.shape_inference import quant_pre_process

        class Reader(quantization.CalibrationDataReader):
            def __init__(self):
                self.batches = iter(batches)

            def get_next(self):
                batch = next(self.batches, None)
                return None if batch is None else {name: batch}

        prepared = file.with_name("prepared.onnx")
        # In a detector, the symbolic shape inference does not support the pyramid, and int8 in other operators gives wrong confidences.
        quant_pre_process(model, prepared, skip_symbolic_shape=is_detector)
        quantization.quantize_static(
            prepared, file, Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
            activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
            op_types_to_quantize=["Conv"] if is_detector else None)
        prepared.unlink()

    @staticmethod
    def outputs(model, name, batches, index):
        import onnxruntime

        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        return [session.run(None, {name: batch})[index] for batch in batches]


class OpenVINO:
    @staticmethod
    def quantize(model, name, batches, file, is_detector):
        # NNCF sends usage statistics unless this variable is set.
        os.environ["NNCF_CI"] = "1"
        import nncf
        import openvino

        quantized = nncf.quantize(
            openvino.Core().read_model(model), nncf.Dataset(batches), preset=nncf.QuantizationPreset.PERFORMANCE,
            target_device=nncf.TargetDevice.CPU, subset_size=len(batches))
        openvino.save_model(quantized, file, compress_to_fp16=False)

    @staticmethod
    def outputs(model, name, batches, index):
        import openvino

        # As in runtimes_peer.py: the quantized network in the default precision of its other operators.
        settings = {"INFERENCE_PRECISION_HINT": "f32"} if pathlib.Path(model).suffix == ".onnx" else {}
        compiled = openvino.Core().compile_model(model, "CPU", settings)
        return [compiled({0: batch})[index].copy() for batch in batches]


def similarities(first, second):
    """Returns the cosine similarity of the outputs for each image."""
    import numpy

    first, second = (numpy.concatenate(outputs).reshape(-1, outputs[0][0].size) for outputs in (first, second))
    norms = numpy.linalg.norm(first, axis=1) * numpy.linalg.norm(second, axis=1)
    return (first * second).sum(axis=1) / norms


def main(peer, model, file):
    file = pathlib.Path(file).resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    runtime = {"onnxruntime": ONNXRuntime, "openvino": OpenVINO}[peer]
    name, shape, is_detector = input_of(model)
    # On the file system of FILE, because the files are moved.
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        quantized = pathlib.Path(folder) / file.name
        runtime.quantize(model, name, random_batches(shape, is_detector, CALIBRATION_IMAGES, seed=1), quantized, is_detector)
        check = random_batches(shape, is_detector, CHECK_IMAGES, seed=2)
        # The last output of a detector has the confidences of the whole image; the others have a different length for each image.
        index = 3 if is_detector else 0
        lowest = similarities(*(runtime.outputs(file, name, check, index) for file in (model, quantized))).min()
        print(f"{file.name}: cosine similarity of the outputs in int8 and float32: at least {lowest:.4f}")
        # Also fails for NaN.
        if not lowest >= LOWEST_SIMILARITY:
            sys.exit(f"{file.name}: the outputs in int8 and float32 differ: cosine similarity {lowest:.4f}")
        # The .xml file is last, so that an .xml file has a .bin file.
        for path in sorted(pathlib.Path(folder).iterdir()):
            path.replace(file.with_name(path.name))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ModuleNotFoundError as error:
        missing(error)
