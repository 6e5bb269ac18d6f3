"""Checks exported models with onnx, ONNX Runtime, coremltools and NumPy, for ExportPythonTests and UpdatableModelTests.

    check_exports.py FOLDER   prints for each file, as JSON: problems, the largest difference from Imprint's confidences
                              and the Core ML specification version
    check_exports.py describe FILE.mlmodel
                              prints the training parameters of a Core ML file as JSON

Needs: pip install numpy onnx onnxruntime coremltools (written against onnx 1.23, onnxruntime 1.31, coremltools 9).
"""

import json
import pathlib
import sys

import coremltools
import numpy
import onnx
import onnxruntime
from google.protobuf.json_format import MessageToDict

from run_core_ml import confidences

KEYS = {"imprint.labels", "imprint.network", "imprint.preprocessing"}
# The version, license and intended use of the models in float16; the other models have none.
DETAILS = ("7", "Apache-2.0", "Tests of Imprint.")


def onnx_problems(path):
    found = []
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(str(path))
    graph = model.graph
    version = 17 if any(node.op_type == "LayerNormalization" for node in model.graph.node) else 13
    if model.ir_version != 8 or [(o.domain, o.version) for o in model.opset_import] != [("", version)]:
        found.append(f"IR {model.ir_version}, operators {model.opset_import}")
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    has_details = path.stem.endswith("-half")
    details = (str(model.model_version), metadata.pop("model_license", ""), model.doc_string)
    if details != (DETAILS if has_details else ("0", "", "")) or metadata.pop("imprint.intendedUse", "") != details[2]:
        found.append(f"details {details}")
    if set(metadata) != KEYS | {"imprint.input"}:
        found.append(f"metadata {sorted(metadata)}")
    for key in KEYS:
        json.loads(metadata[key])
    wants_samples = path.stem.endswith("-samples")
    if metadata["imprint.input"] != ("samples" if wants_samples else "normalized"):
        found.append(f"input {metadata['imprint.input']}")
    if len(graph.input) != 1 or len(graph.output) != 1:
        found.append("expected one input and one output")
    for value in [graph.input[0], graph.output[0]]:
        if value.type.tensor_type.shape.dim[0].dim_param != "batch":
            found.append(f"{value.name} has no dynamic batch axis")
    if len(graph.output[0].type.tensor_type.shape.dim) != 2:
        found.append("expected an output of two axes")
    for tensor in graph.initializer:
        if not tensor.raw_data:
            found.append(f"{tensor.name} is not raw data")
    halves = [t.name for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT16]
    if bool(halves) != path.stem.endswith("-half"):
        found.append(f"float16: {halves}")
    return found


def onnx_confidences(path, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: inputs.transpose(0, 3, 1, 2).astype(numpy.float32)})[0]


def core_ml_problems(path, spec):
    found = []
    if spec.WhichOneof("Type") != "neuralNetworkClassifier":
        return [f"it is a {spec.WhichOneof('Type')}"]
    loaded = coremltools.models.MLModel(spec, skip_model_load=True)
    if list(loaded.input_description) != ["image"]:
        found.append(f"inputs {list(loaded.input_description)}")
    network, description = spec.neuralNetworkClassifier, spec.description
    if description.predictedFeatureName != "classLabel" or description.predictedProbabilitiesName != "probabilities":
        found.append("unexpected names of the outputs")
    types = [(o.name, o.type.WhichOneof("Type")) for o in description.output]
    if types != [("classLabel", "stringType"), ("probabilities", "dictionaryType")]:
        found.append(f"outputs {types}")
    if description.output[1].type.dictionaryType.WhichOneof("KeyType") != "stringKeyType":
        found.append("the keys of the probabilities are not strings")
    stated = description.metadata
    metadata = dict(stated.userDefined)
    has_details = path.stem.endswith("-half")
    details = (stated.versionString, stated.license, stated.shortDescription)
    if metadata.pop("imprint.intendedUse", None) != (DETAILS[2] if has_details else None):
        found.append("another intended use")
    if details != DETAILS if has_details else any(details[:2]) or not details[2].endswith(", exported by Imprint."):
        found.append(f"details {details}")
    if set(metadata) != KEYS or json.loads(metadata["imprint.labels"]) != list(network.stringClassLabels.vector):
        found.append(f"metadata {sorted(metadata)}")
    if network.preprocessing[0].featureName != "image" or not network.preprocessing[0].scaler.channelScale:
        found.append("no scaler for the image")
    defined = {"image"}
    for layer in network.layers:
        if not set(layer.input) <= defined or set(layer.output) & defined:
            found.append(f"{layer.name} has an undefined input, or redefines an output")
        defined |= set(layer.output)
    if network.labelProbabilityLayerName not in defined or len({l.name for l in network.layers}) != len(network.layers):
        found.append("undefined or duplicate names")
    return found


def check(folder):
    report = {"differences": {}, "problems": {}, "versions": {}}

    def compare(name, path, problems, found):
        expected = numpy.fromfile(folder / (path.stem.removesuffix("-samples") + ".expected"), numpy.float32)
        report["problems"][path.name] = problems
        report["differences"][path.name] = float(numpy.abs(found.reshape(-1) - expected).max())

    for name in json.loads((folder / "cases.json").read_text()):
        shape = json.loads((folder / f"{name}.shape").read_text())
        samples = numpy.fromfile(folder / f"{name}.samples", numpy.uint8).reshape(shape)
        normalized = numpy.fromfile(folder / f"{name}.normalized", numpy.float32).reshape(shape)
        for ending, inputs in [("", normalized), ("-half", normalized), ("-samples", samples)]:
            path = folder / f"{name}{ending}.onnx"
            compare(name, path, onnx_problems(path), onnx_confidences(path, inputs))
        for ending in ["", "-half"]:
            path = folder / f"{name}{ending}.mlmodel"
            # Core ML cannot express some networks.
            if not path.exists():
                continue
            spec = coremltools.utils.load_spec(str(path))
            compare(name, path, core_ml_problems(path, spec), confidences(spec, samples))
            report["versions"][path.name] = spec.specificationVersion
    return report


def describe(path):
    """The fields of an updatable model that Core ML's validator checks."""
    spec = coremltools.utils.load_spec(path)
    network = spec.neuralNetworkClassifier
    layers = []
    for layer in network.layers:
        kind = layer.WhichOneof("layer")
        parameters = getattr(layer, kind)
        flags = [getattr(parameters, f).isUpdatable for f in ("weights", "bias") if hasattr(parameters, f)]
        layers.append({"name": layer.name, "kind": kind, "isUpdatable": layer.isUpdatable, "flags": flags})
    return {
        "version": spec.specificationVersion,
        "isUpdatable": spec.isUpdatable,
        "layers": layers,
        "input": [MessageToDict(f) for f in spec.description.input],
        "output": [MessageToDict(f) for f in spec.description.output],
        "trainingInput": [MessageToDict(f) for f in spec.description.trainingInput],
        "updates": MessageToDict(network.updateParams),
    }


if sys.argv[1] == "describe":
    print(json.dumps(describe(sys.argv[2])))
else:
    print(json.dumps(check(pathlib.Path(sys.argv[1]))))
