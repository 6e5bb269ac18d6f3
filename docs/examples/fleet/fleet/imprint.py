"""Reads the head of an Imprint model, and writes a change to it as a personalization.

docs/reference/personalization-file.md specifies the file.
"""

import hashlib
import json
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord


@dataclass
class Head:
    """The head of a classifier."""

    base: str  # the digest of the model file
    labels: list[str]
    channels: int

    @classmethod
    def of(cls, imprint: str, model: str) -> "Head":
        output = subprocess.run([imprint, "inspect", model, "--json"], check=True, capture_output=True, text=True).stdout
        model = json.loads(output)
        nodes = {node["name"]: node for node in model["nodes"]}
        head = next(node for node in reversed(model["nodes"]) if node["kind"] == "dense")
        return cls(model["digest"], model["labels"], nodes[head["inputs"][0]]["output"]["channels"])

    def zeros(self) -> ArrayRecord:
        """Returns the change that does not change the head."""
        return ArrayRecord(
            {
                "head.weight": Array(np.zeros((self.channels, len(self.labels)), np.float32)),
                "head.bias": Array(np.zeros(len(self.labels), np.float32)),
            }
        )


def write_personalization(path: Path, head: Head, change: ArrayRecord) -> None:
    """Writes a change to the head as a personalization: a safetensors file of float16 values."""
    tensors, data = {}, b""
    for name in ("head.bias", "head.weight"):
        values = change[name].numpy().astype("<f2")
        tensors[name] = {"dtype": "F16", "shape": list(values.shape), "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    metadata = {
        "imprint.personalization": "1",
        "imprint.base": head.base,
        "imprint.labels": "[]",
        "imprint.columns": json.dumps(head.labels),
        "imprint.examples": json.dumps({"examples": {}, "corrections": {}}),
    }
    text = "".join(f"{key}\t{value}\n" for key, value in sorted(metadata.items()))
    metadata["imprint.textDigest"] = hashlib.sha256(text.encode()).hexdigest()
    metadata["imprint.digest"] = hashlib.sha256(data).hexdigest()
    header = json.dumps({"__metadata__": metadata, **tensors}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def merge(imprint: str, model: str, change: Path, output: str) -> None:
    """Writes the model with the change."""
    subprocess.run([imprint, "merge", model, str(change), "--output", output, "--quiet"], check=True)
