"""Exports a torchvision network with random weights to ONNX: export_torchvision.py FOLDER NETWORK EXPORTER

EXPORTER is "dynamo" (the torch.export exporter with external weights), "script" (the TorchScript exporter with opset
17) or "script-13" (opset 13). The script writes model.onnx, `image` (float32 [height, width, channels]) and `logits`,
the output of ONNX Runtime, to FOLDER, and prints the versions as JSON. Tested with torch 2.15.0, torchvision 0.29.2,
onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.32.0.
"""

import json
import pathlib
import sys
import warnings

import numpy as np
import onnxruntime
import torch
import torchvision

folder, name, exporter = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
warnings.filterwarnings("ignore")
torch.manual_seed(8)
torch.set_num_threads(2)
side = 299 if name == "inception_v3" else 224
options = {"init_weights": True, "aux_logits": True} if name == "inception_v3" else {}
model = getattr(torchvision.models, name)(weights=None, **options)

# Batch normalizations get random scales and shifts, and the statistics of random images, so that no output vanishes.
norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
for norm in norms:
    torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
    torch.nn.init.normal_(norm.bias, 0, 0.2)
    norm.momentum = None
if norms:
    model.train()
    with torch.no_grad():
        for _ in range(2):
            model(torch.randn(4, 3, side, side))
for module in model.modules():
    if isinstance(module, torch.nn.LayerNorm):
        torch.nn.init.uniform_(module.weight, 0.5, 1.5)
        torch.nn.init.normal_(module.bias, 0, 0.2)
    if hasattr(module, "layer_scale"):
        torch.nn.init.uniform_(module.layer_scale, 0.2, 1)
model.eval()

image = torch.randn(1, 3, side, side)
file = folder / "model.onnx"
# The exporters print their progress. Keep it out of the standard output of this script.
output, sys.stdout = sys.stdout, sys.stderr
if exporter == "dynamo":
    torch.onnx.export(model, (image,), file, dynamo=True, external_data=True, verbose=False)
else:
    version = 13 if exporter == "script-13" else 17
    torch.onnx.export(model, (image,), file, dynamo=False, opset_version=version)
sys.stdout = output

session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
logits = session.run(None, {session.get_inputs()[0].name: image.numpy()})[0]
np.ascontiguousarray(image.numpy()[0].transpose(1, 2, 0)).astype("<f4").tofile(folder / "image")
logits.astype("<f4").tofile(folder / "logits")
print(json.dumps({"torch": torch.__version__, "torchvision": torchvision.__version__}))
