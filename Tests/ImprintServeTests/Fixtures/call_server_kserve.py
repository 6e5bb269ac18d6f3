"""Calls a model server with the client of KServe, and prints the results as JSON.

Usage: call_server_kserve.py URL MODEL PHOTO TOKEN
It ran with kserve 0.21.0.
"""

import asyncio
import json
import pathlib
import sys

import numpy
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig
from kserve.protocol.infer_type import RequestedOutput

url, model, photo, token = sys.argv[1:]
headers = {"Authorization": f"Bearer {token}"}


async def infer(client, name, datatype, array, binary):
    tensor = InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=binary)
    outputs = [RequestedOutput(name, {"binary_data": binary}) for name in ("confidences", "labels")]
    request = InferRequest(model, [tensor], request_outputs=outputs)
    found = await client.infer(url, request, model_name=model, headers=dict(headers))
    labels = found.get_output_by_name("labels").as_numpy()
    return {
        "confidences": found.get_output_by_name("confidences").as_numpy().tolist(),
        "labels": [str(label, "utf-8") if isinstance(label, bytes) else str(label) for label in labels],
    }


async def main():
    client = InferenceRESTClient(RESTConfig(protocol="v2"))
    results = {
        "live": await client.is_server_live(url, headers=headers),
        "ready": await client.is_server_ready(url, headers=headers)
        and await client.is_model_ready(url, model, headers=headers),
    }
    pixels = numpy.stack([numpy.full((5, 7, 3), grey, numpy.uint8) for grey in (200, 30)])
    picture = numpy.array([pathlib.Path(photo).read_bytes()], dtype=numpy.object_)
    results["pixels True"] = await infer(client, "pixels", "UINT8", pixels, True)
    results["pixels False"] = await infer(client, "pixels", "UINT8", pixels, False)
    results["picture"] = await infer(client, "image", "BYTES", picture, True)
    await client.close()
    print(json.dumps(results))


asyncio.run(main())
