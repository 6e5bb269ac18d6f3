"""Inference runtimes: ONNX Runtime, OpenVINO and ncnn, in float32; ONNX Runtime and OpenVINO also in int8; OpenVINO also in bfloat16.

The case may be an ONNX file. The suite load measures loading a file, including the first prediction.
"""

import atexit
import hashlib
import importlib.metadata
import pathlib
import shutil
import subprocess
import sys
import tempfile

from cases import PREDICT, is_file
from measure import arguments, measure, missing
from quantize import input_of, random_batch

FOLDER = pathlib.Path(__file__).resolve().parent


def make(file, script, *arguments, sources):
    """Runs a script that writes a file, unless the file is newer than its sources and the script, and returns its path."""
    script = FOLDER / script
    if not file.exists() or file.stat().st_mtime < max(source.stat().st_mtime for source in (*sources, script)):
        done = subprocess.run([sys.executable, "-W", "ignore", script, *arguments, file], stdout=sys.stderr)
        if done.returncode:
            sys.exit(done.returncode)
    return str(file)


def exported(kind):
    """Returns the file of the network; a separate process writes it if it is missing or out of date."""
    if is_file(options.case):
        return options.case if kind == "onnx" else converted(options.case)
    file = FOLDER / ".models" / f"{options.case.replace('/', '-')}.{kind}"
    return make(file, "export.py", options.case, sources=[FOLDER / "networks.py"])


def model_file(kind):
    """Returns the ONNX file of the network, or in int8 its quantized file, which ends in `kind`."""
    model = pathlib.Path(exported("onnx"))
    if options.precision != "int8":
        return str(model)
    # Files in different folders can have the same name.
    digest = "-" + hashlib.sha256(str(model).encode()).hexdigest()[:8] if is_file(options.case) else ""
    file = FOLDER / ".models" / f"{model.stem}{digest}-{options.peer}-int8.{kind}"
    return make(file, "quantize.py", options.peer, model, sources=[model])


def converted(model):
    """Converts an ONNX file to the format of ncnn, and returns its path."""
    import pnnx

    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    file = f"{folder}/model.ncnn.param"
    shape = ",".join(map(str, images.shape))
    subprocess.run(
        [pnnx.EXEC_PATH, model, f"inputshape=[{shape}]", "fp16=0", f"ncnnparam={file}",
         f"ncnnbin={file.removesuffix('param')}bin", f"pnnxparam={folder}/p", f"pnnxbin={folder}/b",
         f"pnnxpy={folder}/p.py", f"ncnnpy={folder}/n.py", f"pnnxonnx={folder}/p.onnx"],
        cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return file


def onnxruntime():
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    file = model_file("onnx")

    def load():
        return onnxruntime.InferenceSession(file, settings, providers=["CPUExecutionProvider"])

    if options.suite == "load":
        return lambda: load().run(None, {name: images}), onnxruntime.__version__
    session = load()
    return lambda: session.run(None, {name: images}), onnxruntime.__version__


def openvino():
    import openvino

    settings = {"INFERENCE_NUM_THREADS": options.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    file, version = model_file("xml"), openvino.__version__.split("-")[0]
    if options.precision != "int8":
        settings["INFERENCE_PRECISION_HINT"] = {"float32": "f32", "bfloat16": "bf16"}[options.precision]
    else:
        # The operators that are not quantized have the default precision: bfloat16 if the processor has the instructions.
        version += f" with nncf {importlib.metadata.version('nncf')}"

    def load():
        return openvino.Core().compile_model(file, "CPU", settings).create_infer_request()

    if options.suite == "load":
        return lambda: load().infer({0: images}), version
    request = load()
    return lambda: request.infer({0: images}), version


def ncnn():
    import ncnn

    network = ncnn.Net()
    network.opt.num_threads = options.threads
    for half in ("bf16_storage", "fp16_storage", "fp16_arithmetic", "fp16_packed"):
        setattr(network.opt, f"use_{half}", False)
    file = exported("ncnn.param")
    if network.load_param(file) or network.load_model(file.removesuffix("param") + "bin"):
        sys.exit(f"ncnn cannot read {file}")

    def step():
        extractor = network.create_extractor()
        extractor.input("in0", ncnn.Mat(images[0]))
        return extractor.extract("out0")

    return step, ncnn.__version__


options = arguments("Measures predictions.", ["onnxruntime", "openvino", "ncnn"])
try:
    import numpy

    if is_file(options.case):
        name, shape, is_detector = input_of(options.case)
        batch = shape[0]
    else:
        _, size, channels, batch, _ = PREDICT[options.case]
        name, shape, is_detector = "images", (batch, channels, size, size), False
    images = random_batch(numpy.random.default_rng(0), shape, is_detector)
    step, version = {"onnxruntime": onnxruntime, "openvino": openvino, "ncnn": ncnn}[options.peer]()
except ModuleNotFoundError as error:
    missing(error)
measure(options, step, "ms", batch=batch, version=version)
