"""Runs exported logo detectors in ONNX Runtime, or a Core ML pipeline in NumPy, for DetectorExportTests.

    run_exported_detectors.py FOLDER   runs each case of FOLDER/cases.json, {"model": FILE, "image": FILE, "width": …, "height": …},
                                       with the bytes of the RGB image, and prints the outputs and problems of each as JSON

Needs: pip install numpy onnx onnxruntime coremltools (written against onnx 1.23, onnxruntime 1.32, coremltools 9).
"""

import json
import pathlib
import sys

import coremltools
import numpy
import onnx
import onnxruntime

from run_core_ml import outputs

KEYS = {"imprint.labels", "imprint.network", "imprint.preprocessing", "imprint.spotting"}


def onnx_problems(path):
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(str(path))
    found = []
    if model.ir_version != 8 or [(o.domain, o.version) for o in model.opset_import] != [("", 18)]:
        found.append(f"IR {model.ir_version}, operators {model.opset_import}")
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    if set(metadata) != KEYS | {"imprint.input"} or metadata["imprint.input"] != "samples":
        found.append(f"metadata {metadata}")
    for key in KEYS & set(metadata):
        json.loads(metadata[key])
    names = [tensor.name for tensor in model.graph.initializer]
    if len(set(names)) != len(names):
        found.append(f"initializers {names}")
    return found


def run_onnx(path, image):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = session.run(names, {"input": image.transpose(0, 3, 1, 2).astype(numpy.float32)})
    problems = onnx_problems(path)
    types = {name: str(output.dtype) for name, output in zip(names, found)}
    if types != {"boxes": "float32", "confidences": "float32", "labels": "int64", "imageConfidences": "float32"}:
        problems.append(f"outputs {types}")
    return {name: output.tolist() for name, output in zip(names, found)} | {"problems": problems}


def names_of(features):
    return [feature.name for feature in features]


def core_ml_problems(spec):
    coremltools.models.MLModel(spec, skip_model_load=True)
    found = []
    network, suppression = spec.pipeline.models
    rules, thresholds = suppression.nonMaximumSuppression, ["iouThreshold", "confidenceThreshold"]
    if [m.WhichOneof("Type") for m in (spec, network, suppression)] != [
        "pipeline", "neuralNetwork", "nonMaximumSuppression"
    ] or {m.specificationVersion for m in (spec, network, suppression)} != {4}:
        found.append("unexpected types or versions")
    raw, result = ["rawConfidence", "rawCoordinates"], ["confidence", "coordinates"]
    for model, inputs, outputs_ in [
        (spec, ["image"] + thresholds, result), (network, ["image"], raw), (suppression, raw + thresholds, result)
    ]:
        if names_of(model.description.input) != inputs or names_of(model.description.output) != outputs_:
            found.append(f"features {model.description}")
    if [rules.confidenceInputFeatureName, rules.coordinatesInputFeatureName] != raw or [
        rules.confidenceOutputFeatureName, rules.coordinatesOutputFeatureName
    ] != result or [rules.iouThresholdInputFeatureName, rules.confidenceThresholdInputFeatureName] != thresholds:
        found.append("unexpected names of the suppression")
    if not rules.pickTop.perClass or abs(rules.iouThreshold - 0.45) > 1e-6 or rules.confidenceThreshold != 0.5:
        found.append(f"rules {rules}")
    if any(not feature.type.isOptional for feature in spec.description.input[1:]):
        found.append("a threshold is not optional")
    metadata = spec.description.metadata.userDefined
    if set(metadata) != KEYS or not set(rules.stringClassLabels.vector) < set(json.loads(metadata["imprint.labels"])):
        found.append(f"metadata {metadata}")
    if (network.neuralNetwork.arrayInputShapeMapping, network.neuralNetwork.imageInputShapeMapping) != (1, 1):
        found.append("unexpected axes of the inputs")
    defined = {"image"}
    for layer in network.neuralNetwork.layers:
        if not set(layer.input) <= defined or set(layer.output) & defined:
            found.append(f"{layer.name} has an undefined input, or redefines an output")
        defined |= set(layer.output)
    if len({layer.name for layer in network.neuralNetwork.layers}) != len(network.neuralNetwork.layers):
        found.append("duplicate names")
    return found


def run_core_ml(path, image):
    spec = coremltools.utils.load_spec(str(path))
    problems, network = core_ml_problems(spec), spec.pipeline.models[0]
    values = outputs(network, network.neuralNetwork, image)
    for output in network.description.output:
        if list(values[output.name].shape) != list(output.type.multiArrayType.shape):
            problems.append(f"{output.name} has the shape {values[output.name].shape}")
    return {
        "boxes": values["rawCoordinates"].tolist(),
        "logoConfidences": values["rawConfidence"].tolist(),
        "labels": list(spec.pipeline.models[1].nonMaximumSuppression.stringClassLabels.vector),
        "problems": problems,
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    results = []
    for case in json.loads((folder / "cases.json").read_text()):
        image = numpy.fromfile(folder / case["image"], numpy.uint8).reshape(1, case["height"], case["width"], 3)
        run = run_onnx if case["model"].endswith(".onnx") else run_core_ml
        results.append(run(folder / case["model"], image))
    print(json.dumps(results))


main()
