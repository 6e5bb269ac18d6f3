"""Measures how often int8 models of ONNX Runtime and OpenVINO keep the top-1 label of the float32 model.

    python3 Benchmarks/accuracy/int8_peers.py MODEL.onnx PHOTOS

`imprint export M --to onnx` writes MODEL.onnx. Up to 150 of the photos in the folder PHOTOS calibrate, and all are compared. Photos are cropped to
a square and resized with Pillow. Prints a Markdown table. Requires numpy, pillow, onnx, onnxruntime, openvino and nncf.
"""

import json
import sys
import tempfile
from pathlib import Path

import nncf
import numpy
import onnx
import onnxruntime
import openvino
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from PIL import Image, ImageOps


def main():
    model, photos = sys.argv[1], sys.argv[2]
    rules = preprocessing(model)
    files = sorted(path for path in Path(photos).rglob("*") if path.is_file())
    images = [prepared(path, rules) for path in files]
    # Three of four photos among 200 that are spread over the folder, as `imprint quantize` chooses them.
    spread = [len(images) * index // 200 for index in range(200)] if len(images) > 200 else range(len(images))
    calibration = [images[index] for position, index in enumerate(spread) if position % 4 != 3]
    session = onnxruntime.InferenceSession(model)
    name = session.get_inputs()[0].name
    first = labels(lambda image: session.run(None, {name: image})[0], images)
    print("| program | photos with the same top-1 label |")
    print("|---|---|")

    def report(program, predict):
        same = int((labels(predict, images) == first).sum())
        print(f"| {program} | {same} of {len(images)} ({100 * same / len(images):.1f} %) |", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        plain = f"{folder}/plain.onnx"
        quant_pre_process(model, plain)
        for method in (CalibrationMethod.MinMax, CalibrationMethod.Entropy):
            file = f"{folder}/{method.name}.onnx"
            quantize_static(
                plain, file, Reader(name, calibration), quant_format=QuantFormat.QDQ, per_channel=True,
                weight_type=QuantType.QInt8, activation_type=QuantType.QUInt8, calibrate_method=method)
            quantized = onnxruntime.InferenceSession(file)
            report(f"ONNX Runtime, {method.name}", lambda image, q=quantized: q.run(None, {name: image})[0])
    core = openvino.Core()
    for preset in (nncf.QuantizationPreset.PERFORMANCE, nncf.QuantizationPreset.MIXED):
        quantized = nncf.quantize(
            core.read_model(model), nncf.Dataset(calibration), preset=preset, subset_size=len(calibration))
        compiled = core.compile_model(quantized, "CPU")
        report(f"OpenVINO, {preset.name}", lambda image, c=compiled: c(image)[0])


class Reader(CalibrationDataReader):
    """Passes images to the calibration of ONNX Runtime."""

    def __init__(self, name, images):
        self.feeds = iter([{name: image} for image in images])

    def get_next(self):
        return next(self.feeds, None)


def preprocessing(model):
    """Returns the rules in the metadata of an exported model."""
    metadata = {entry.key: entry.value for entry in onnx.load(model).metadata_props}
    return json.loads(metadata["imprint.preprocessing"])


def prepared(path, rules):
    """Returns a photo as the input of the network, [1, 3, height, width]."""
    photo = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
    photo = ImageOps.fit(photo, (rules["width"], rules["height"]), Image.Resampling.BILINEAR)
    pixels = numpy.asarray(photo, dtype=numpy.float32)
    pixels = (pixels - numpy.float32(rules["mean"])) * numpy.float32(rules["scale"])
    return numpy.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def labels(predict, images):
    """Returns the index of the largest output for each image."""
    return numpy.array([int(numpy.argmax(predict(image))) for image in images])


if __name__ == "__main__":
    main()
