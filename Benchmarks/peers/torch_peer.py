"""PyTorch: training steps, predictions and layers.

torch-eager is PyTorch with default settings. torch-channels-last stores images and weights in the memory format that is fastest
for convolutions. torch-tuned additionally keeps freed memory, so that the system does not clear its pages in every step.
"""

import os
import sys

from cases import CONVOLUTIONS, PREDICT, TRAIN
from measure import arguments, measure, missing

TUNABLES = ":".join(
    f"glibc.malloc.{name}={value}"
    for name, value in [
        ("mmap_threshold", 1 << 34), ("trim_threshold", 1 << 34), ("mmap_max", 0), ("top_pad", 1 << 28)])


def network_of(case, memory_format):
    network, size, channels, batch, labels = case
    images = torch.randn(batch, channels, size, size).contiguous(memory_format=memory_format)
    return NETWORKS[network](labels).to(memory_format=memory_format), images, batch


def prediction(case, memory_format):
    network, images, batch = network_of(case, memory_format)
    network.eval()

    def step():
        with torch.inference_mode():
            network(images)

    return step, batch


def training_step(case, memory_format):
    network, images, batch = network_of(case, memory_format)
    labels = torch.arange(batch) % case[4]
    network.train()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9)

    def step():
        loss = functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step, batch


def layer_of(name, memory_format):
    """Returns the layer, its input, and the work of a pass."""
    batch = 16
    if name in CONVOLUTIONS:
        kernel, inputs, outputs, size, stride, groups = CONVOLUTIONS[name]
        layer = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        images = torch.randn(batch, inputs, size, size)
        out_size = (size + stride - 1) // stride
        work = 2e-9 * (batch * out_size**2 * outputs * kernel**2 * inputs // groups)
    elif name == "dense-2048-1000":
        layer, images, work = nn.Linear(2048, 1000), torch.randn(batch, 2048), 2e-9 * batch * 2048 * 1000
    elif name == "sgemm-1024":
        layer, images, work = nn.Linear(1024, 1024, bias=False), torch.randn(1024, 1024), 2e-9 * 1024**3
    else:
        images = torch.randn(batch, 64, 112, 112)
        work = 4e-9 * images.numel()
        layer = nn.MaxPool2d(2) if name.startswith("maxpool") else nn.Sequential(nn.BatchNorm2d(64), nn.ReLU(True))
    if images.dim() == 4:
        images = images.contiguous(memory_format=memory_format)
        layer = layer.to(memory_format=memory_format)
    return layer, images, work


def layer_pass(case, memory_format):
    """Returns the step, its work, the unit of the result, and the batch size."""
    if case == "softmax-cross-entropy-1000":
        logits, labels = torch.randn(16, 1000, requires_grad=True), torch.arange(16) * 7
        return lambda: torch.autograd.grad(functional.cross_entropy(logits, labels), logits), 1, "µs", 16
    name, _, part = case.partition("/")
    layer, images, work = layer_of(name, memory_format)
    unit = "GFLOP/s"
    if name.startswith("maxpool"):
        work, unit = 1.25 * work, "GB/s"
    elif name.startswith("batchnorm"):
        work, unit = (3 if part == "backward" else 2) * work, "GB/s"
    elif part == "backward":
        work *= 2
    if part in ("", "forward"):
        return lambda: layer(images), work, unit, len(images)
    images.requires_grad_(part != "weightGradient")
    wanted = [] if part == "weightGradient" else [images]
    wanted += [] if part == "dataGradient" else list(layer.parameters())
    if part == "dataGradient":
        layer.requires_grad_(False)
    result = layer(images)
    gradient = torch.randn_like(result)
    return lambda: torch.autograd.grad(result, wanted, gradient, retain_graph=True), work, unit, len(images)


def main():
    channels_last = options.peer != "torch-eager"
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if options.suite == "layers":
        step, work, unit, batch = layer_pass(options.case, memory_format)
        return measure(options, step, unit, work, batch, version=torch.__version__)
    if options.suite == "predict":
        step, batch = prediction(PREDICT[options.case], memory_format)
        return measure(options, step, "ms", batch=batch, version=torch.__version__)
    case = TRAIN[options.case]
    step, batch = (training_step if case[4] else prediction)(case, memory_format)
    return measure(options, step, "images/s", batch, batch, version=torch.__version__)


options = arguments("Measures PyTorch.", ["torch-eager", "torch-channels-last", "torch-tuned"])
if options.peer == "torch-tuned" and os.environ.get("GLIBC_TUNABLES") != TUNABLES:
    # The C library reads its tunables when a program starts.
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "GLIBC_TUNABLES": TUNABLES})
try:
    import torch
    from torch import nn
    from torch.nn import functional
except ModuleNotFoundError as error:
    missing(error)
from networks import NETWORKS

main()
