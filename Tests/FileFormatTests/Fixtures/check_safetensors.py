"""Reads and writes files with Python's safetensors package, for SafetensorsPythonTests.

    check_safetensors.py describe FILE   prints metadata and tensors as JSON (values as exact hexadecimal floats)
    check_safetensors.py write FILE      writes the file that the Swift test reads
    check_safetensors.py digest FILE     prints the digest of the tensors, computed as docs/reference/model-file.md specifies

Needs: pip install safetensors numpy (written against safetensors 0.6, numpy 2).
"""

import hashlib
import json
import sys

import numpy
from safetensors import safe_open
from safetensors.numpy import save_file


def describe(path):
    with safe_open(path, framework="numpy") as file:
        tensors = {
            name: {
                "type": str(file.get_tensor(name).dtype),
                "shape": list(file.get_tensor(name).shape),
                "values": [float(value).hex() for value in file.get_tensor(name).ravel()],
            }
            for name in file.keys()
        }
        print(json.dumps({"metadata": file.metadata(), "tensors": tensors}))


def write(path):
    tensors = {
        "float32": (numpy.arange(6, dtype=numpy.float32) / 7).reshape(2, 3),
        "float16": numpy.array([1.5, -2.0, 65504.0, 2.0**-24], dtype=numpy.float16),
        "int64": numpy.array([[-1], [2]], dtype=numpy.int64),
        "uint8": numpy.array([3, 4, 5], dtype=numpy.uint8),
        "scalar": numpy.array(0.25, dtype=numpy.float32),
        "empty": numpy.zeros((2, 0, 3), dtype=numpy.float32),
    }
    save_file(tensors, path, metadata={"greeting": 'say "hi"\n\u00e9\U0001f600', "two": "2"})


def digest(path):
    with open(path, "rb") as file:
        header_length = int.from_bytes(file.read(8), "little")
        file.seek(8 + header_length)
        print(hashlib.sha256(file.read()).hexdigest(), end="")


{"describe": describe, "write": write, "digest": digest}[sys.argv[1]](sys.argv[2])
