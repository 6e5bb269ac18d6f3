"""The cases of `imprint bench` for the peers, with the names of Sources/ImprintBenchmarks."""

# case: network, input size, channels, batch size, labels
TRAIN = {
    "lenet-28": ("lenet", 28, 1, 32, 10),
    "logonet-96": ("logonet", 96, 3, 32, 2),
    "logonet-96-width-0.75": ("logonet-width-0.75", 96, 3, 32, 2),
    "logonet-224": ("logonet", 224, 3, 32, 2),
    "mobilenet-v1-224": ("mobilenet-v1", 224, 3, 16, 1000),
    "resnet-50-224": ("resnet-50", 224, 3, 8, 1000),
    # No labels: only the forward pass up to the features, as in training of only the head.
    "mobilenet-v1-features-224": ("mobilenet-v1", 224, 3, 32, None),
}

PREDICT = {
    "mobilenet-v1-224": ("mobilenet-v1", 224, 3, 1, 1000),
    "mobilenet-v1-224/batch-32": ("mobilenet-v1", 224, 3, 32, 1000),
    "mobilenet-v2-224": ("mobilenet-v2", 224, 3, 1, 1000),
    "efficientnet-lite0-224": ("efficientnet-lite0", 224, 3, 1, 1000),
    "resnet-50-224": ("resnet-50", 224, 3, 1, 1000),
    "conv3x3-net-299": ("conv3x3-net", 299, 3, 1, 1000),
    "logonet-96": ("logonet", 96, 3, 1, 2),
}

# Cases without a peer: logo detection on an image pyramid, whose peers need a model file, and workloads of apps.
DETECTION = ("logospot-299x532",)
# The height and width of the photo in which detectors are measured.
PHOTO_SIZE = (532, 299)
APPS = ("requests/1-task", "requests/16-tasks", "stream-30-fps")
WITHOUT_PEERS = (*DETECTION, *APPS)

# layer: kernel size, input channels, output channels, input size, stride, groups
CONVOLUTIONS = {
    "conv3x3-64-64-56": (3, 64, 64, 56, 1, 1),
    "conv3x3-128-128-28": (3, 128, 128, 28, 1, 1),
    "conv3x3-256-256-14": (3, 256, 256, 14, 1, 1),
    "conv3x3-512-512-7": (3, 512, 512, 7, 1, 1),
    "conv1x1-64-256-56": (1, 64, 256, 56, 1, 1),
    "conv1x1-256-64-56": (1, 256, 64, 56, 1, 1),
    "conv1x1-512-128-28": (1, 512, 128, 28, 1, 1),
    "conv5x5-32-64-48": (5, 32, 64, 48, 1, 1),
    "conv3x3-stride2-3-32-224": (3, 3, 32, 224, 2, 1),
    "depthwise3x3-256-28": (3, 256, 256, 28, 1, 256),
    "depthwise3x3-64-112": (3, 64, 64, 112, 1, 64),
}

ALL_PASSES = ("forward", "dataGradient", "weightGradient", "backward")

# layer: its passes; empty if the layer is a single case
LAYERS = {
    "sgemm-1024": (),
    **{name: ALL_PASSES for name in CONVOLUTIONS},
    "conv3x3-stride2-3-32-224": ("forward", "weightGradient"),
    "maxpool2x2-64-112": ("forward", "backward"),
    "batchnorm-relu-64-112": ("forward", "backward"),
    "dense-2048-1000": ALL_PASSES,
    "softmax-cross-entropy-1000": (),
}

DATA = ("photos-224",)

LOAD = ("mobilenet-v1-224", "resnet-50-224")

SUITES = {
    "train": list(TRAIN),
    "predict": [*PREDICT, *DETECTION],
    "load": list(LOAD),
    "data": list(DATA),
    "apps": list(APPS),
    "layers": [f"{layer}/{part}" if part else layer for layer, parts in LAYERS.items() for part in parts or ("",)],
}


TORCH = ["torch-eager", "torch-channels-last", "torch-tuned"]

# The peers of each suite.
PEERS = {
    "train": TORCH + ["tensorflow"],
    "predict": TORCH + ["onnxruntime", "openvino", "ncnn"],
    "load": ["onnxruntime", "openvino"],
    "data": ["pillow", "opencv"],
    "apps": [],
    "layers": TORCH,
}


# The peers that compute with another precision than float32.
PRECISIONS = {"bfloat16": ("openvino",), "int8": ("onnxruntime", "openvino")}


def is_file(case):
    """Returns whether a case is an ONNX file, or a model file of a detector."""
    return case.endswith(".onnx") or is_detector(case)


def is_detector(case):
    """Returns whether a case is a model file of a detector, which the peers run as an ONNX file."""
    return case.endswith(".imprint")


def peers(suite, case):
    """Returns the peers that support a case: ncnn has no batches and no detectors, and PyTorch does not read ONNX."""
    if is_detector(case):
        return ["onnxruntime", "openvino"]
    if is_file(case):
        return [peer for peer in PEERS[suite] if peer not in TORCH]
    if case in WITHOUT_PEERS:
        return []
    return [peer for peer in PEERS[suite] if peer != "ncnn" or PREDICT[case][3] == 1]
