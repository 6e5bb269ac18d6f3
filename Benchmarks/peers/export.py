"""export.py CASE FILE exports the network of a prediction case to FILE, which ends in .onnx or .ncnn.param.

CASE is a case of `imprint bench predict` or a classifier of torchvision, such as mobilenet_v2, with random weights.
"""

import pathlib
import subprocess
import sys
import tempfile

import torch
from torch import nn

from cases import PREDICT
from networks import NETWORKS


def network_of(case):
    """Returns the network and an input; batch normalization statistics keep activations in the range of a trained network."""
    torch.manual_seed(0)
    if case in PREDICT:
        network, size, channels, batch, labels = PREDICT[case]
        result = NETWORKS[network](labels)
    else:
        from torchvision import models

        size, channels, batch = 299 if case == "inception_v3" else 224, 3, 1
        result = models.get_model(case, weights=None)
    for layer in result.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 1
    with torch.no_grad():
        result.train()(torch.randn(4, channels, size, size))
    return result.eval(), torch.randn(batch, channels, size, size)


def export_onnx(case, file):
    network, images = network_of(case)
    torch.onnx.export(
        network, (images,), file, input_names=["images"], output_names=["logits"], opset_version=17, dynamo=False)


def export_ncnn(case, file):
    import pnnx

    network, images = network_of(case)
    with tempfile.TemporaryDirectory() as folder:
        script = f"{folder}/network.pt"
        torch.jit.trace(network, images).save(script)
        shape = ",".join(map(str, images.shape))
        subprocess.run(
            [pnnx.EXEC_PATH, script, f"inputshape=[{shape}]", "fp16=0", f"ncnnparam={file}",
             f"ncnnbin={file.with_suffix('.bin')}"], cwd=folder, check=True, stdout=subprocess.DEVNULL)


case, file = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
file.parent.mkdir(parents=True, exist_ok=True)
(export_onnx if file.suffix == ".onnx" else export_ncnn)(case, file)
