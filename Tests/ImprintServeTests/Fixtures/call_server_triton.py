"""Calls a model server with the client of Triton, and prints the results as JSON.

Usage: call_server_triton.py HOST:PORT MODEL PHOTO TOKEN
It ran with tritonclient 2.73.0.
"""

import json
import pathlib
import sys

import numpy
import tritonclient.http as triton

address, model, photo, token = sys.argv[1:]
client = triton.InferenceServerClient(address)
headers = {"Authorization": f"Bearer {token}"}
results = {
    "live": client.is_server_live(),
    "ready": client.is_server_ready() and client.is_model_ready(model, "1", headers=headers),
    "server": client.get_server_metadata(headers=headers)["name"],
    "labels": client.get_model_metadata(model, headers=headers)["parameters"]["labels"],
}


def texts(array):
    # Binary elements are bytes, and those in JSON are strings.
    return [str(text, "utf-8") if isinstance(text, bytes) else text for text in array.reshape(-1)]


def infer(name, datatype, array, outputs, binary):
    tensor = triton.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=binary)
    # The client adds header fields to the dictionary.
    return client.infer(model, [tensor], outputs=outputs, request_id="7", headers=dict(headers))


for binary in (True, False):
    outputs = [triton.InferRequestedOutput(name, binary_data=binary) for name in ("confidences", "labels")]
    pixels = numpy.stack([numpy.full((5, 7, 3), grey, numpy.uint8) for grey in (200, 30)])
    found = infer("pixels", "UINT8", pixels, outputs, binary)
    results[f"pixels {binary}"] = found.as_numpy("confidences").tolist()
    results[f"labels {binary}"] = texts(found.as_numpy("labels"))
    values = ((numpy.full((1, 8, 8, 3), 200) - 127.5) / 127.5).astype(numpy.float32)
    results[f"values {binary}"] = infer("values", "FP32", values, outputs, binary).as_numpy("confidences").tolist()

picture = numpy.array([pathlib.Path(photo).read_bytes()], dtype=numpy.object_)
classes = [triton.InferRequestedOutput("confidences", class_count=2)]
found = infer("image", "BYTES", picture, classes, True)
results["classes"] = texts(found.as_numpy("confidences"))
results["id"] = found.get_response()["id"]
# Without requested outputs, the response has all of them, in binary.
results["all"] = sorted(output["name"] for output in infer("image", "BYTES", picture, None, True).get_response()["outputs"])
try:
    infer("pixels", "UINT8", pixels[:, :, :, :2], None, True)
except triton.InferenceServerException as error:
    results["error"] = error.message()
    results["status"] = error.status()
print(json.dumps(results))
