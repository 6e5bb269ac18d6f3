"""Programs that predict but do not train: ONNX Runtime, OpenVINO and ncnn, with float32 throughout."""

import pathlib
import subprocess
import sys

from cases import PREDICT
from measure import arguments, measure, missing

FOLDER = pathlib.Path(__file__).resolve().parent


def exported(kind):
    """The file of the network, written in a process of its own where it is missing or out of date."""
    file = FOLDER / ".models" / f"{options.case.replace('/', '-')}.{kind}"
    sources = [FOLDER / "networks.py", FOLDER / "export.py"]
    if not file.exists() or file.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        subprocess.run(
            [sys.executable, "-W", "ignore", FOLDER / "export.py", options.case, file], check=True, stdout=sys.stderr)
    return str(file)


def onnxruntime():
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(exported("onnx"), settings, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"images": images}), onnxruntime.__version__


def openvino():
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": options.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(exported("onnx"), "CPU", settings).create_infer_request()
    return lambda: request.infer({0: images}), openvino.__version__.split("-")[0]


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

    _, size, channels, batch, _ = PREDICT[options.case]
    images = numpy.random.default_rng(0).standard_normal((batch, channels, size, size), numpy.float32)
    step, version = {"onnxruntime": onnxruntime, "openvino": openvino, "ncnn": ncnn}[options.peer]()
except ModuleNotFoundError as error:
    missing(error)
measure(options, step, "ms", batch=batch, version=version)
