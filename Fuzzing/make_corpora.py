"""Writes the seed corpus and the dictionary of each fuzz target to a folder, named as OSS-Fuzz expects them.

    python3 Fuzzing/make_corpora.py OUTPUT              fuzz_TARGET_seed_corpus.zip and fuzz_TARGET.dict
    python3 Fuzzing/make_corpora.py OUTPUT --unpacked   a folder fuzz_TARGET_seed_corpus instead of each archive

The seeds are the fixtures of the tests, the files in Fuzzing/seeds, and the texts below.
"""

import argparse
import hashlib
import json
import pathlib
import shutil
import struct
import zipfile

FUZZING = pathlib.Path(__file__).resolve().parent
FIXTURES = FUZZING.parent / "Tests/FileFormatTests/Fixtures"
VERSION_1 = FUZZING.parent / "Tests/ImprintTests/Fixtures/Version1"
# The targets whose seeds are the files of a folder.
STORED = ["image", "exif", "color_profile", "model_signature", "pem_key"]
# Larger seeds slow down each execution.
LIMIT = 100_000

# The dictionaries of a target; those of containers and of their contents are joined.
DICTIONARIES = {
    "model_file": ["safetensors", "model", "json"],
    "checkpoint": ["safetensors", "model", "json"],
    "personalization": ["safetensors", "model", "json"],
    "safetensors": ["safetensors", "json"],
    "onnx": ["onnx"],
    "core_ml": ["core_ml"],
    "core_ml_package": ["core_ml"],
    "caffe": ["caffe"],
    "pytorch": ["pytorch", "safetensors"],
    "tflite": ["tflite"],
    "image": ["image"],
    "exif": ["image"],
    "color_profile": ["image"],
    "annotations": ["annotations", "json"],
    "label_list": ["annotations", "json"],
    "drawing_recipe": ["recipe", "json"],
    "request": ["request", "json"],
    "model_signature": ["signature", "json"],
    "signed_statement": ["signature", "json"],
    "pem_key": ["pem"],
    "store_index": ["store_index", "json"],
}

REQUESTS = [
    "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD /v2/models/fuzz/versions/1/ready HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\n\r\n",
]
BODIES = [
    '{"inputs":[{"name":"values","shape":[1,4,4,3],"datatype":"FP32","data":[' + "0.5," * 47 + "1]}]}",
    '{"id":"7","inputs":[{"name":"pixels","shape":[1,1,2,3],"datatype":"UINT8","data":[[[[0,1,2],[3,4,255]]]]}],'
    '"outputs":[{"name":"confidences","parameters":{"classification":1,"binary_data":true}}]}',
    '{"inputs":[{"name":"image","shape":[1],"datatype":"BYTES","data":["iVBORw0KGgo="]}],'
    '"parameters":{"binary_data_output":true,"minimum_confidence":0.5}}',
]
# The first byte selects the file.
ANNOTATIONS = [
    b'\0{"images":[{"id":7,"file_name":"a.png","width":200,"height":100}],"annotations":[{"id":1,"image_id":7,"category_id":3,'
    b'"bbox":[20,10,40,20],"iscrowd":0,"segmentation":[[20,10,60,10,60,30]],"area":800}],"categories":[{"id":3,"name":"cat"}]}',
    b'\0[{"image":"a.png","annotations":[{"label":"cat","coordinates":{"x":40,"y":20,"width":40,"height":20}}]},'
    b'{"imagefilename":"sub/b.png","annotations":[]}]',
    b"\x01train: images\nnc: 2\nnames: [dog, 'cat']  # two\n",
    b"\x01path: .\ntrain: images\nnames:\n  0: dog\n  1: \"c\\u0061t\"\n",
    b"\x021 0.2 0.2 0.2 0.2\n\n0 0.5 0.5 0.75 0.5 0.75 1 0.5 1\n",
    b'\x03<?xml version="1.0"?><annotation><filename>a.png</filename><size><width>200</width><height>100</height></size><object>'
    b"<name>c&amp;t</name><difficult>0</difficult><bndbox><xmin>20</xmin><ymin>10</ymin><xmax>60</xmax><ymax>30</ymax></bndbox>"
    b"</object></annotation>",
]
LABEL_LISTS = [
    "photo,label\na.png,cat\nb.png,dog\n",
    'photo,labels\r\n"a.png","cat;dog"\r\nb.png,\r\n',
    '[{"photo":"a.png","labels":["cat"]},\n{"photo":"b.png","label":"dog"}]',
    '{"photo":"a.png","label":"cat"}\n{"photo":"b.png","labels":["dog","cat"]}\n',
]

# The lists of installed models of a store.
DIGESTS = ["0a" * 32, "b1" * 32, "cd" * 32]
DATE = "2026-01-02T03:04:05Z"
INSTALLED = {"sha256": DIGESTS[0], "byteCount": 3000, "source": "https://models.example/a.imprint", "date": DATE}
SIGNED = {**INSTALLED, "sha256": DIGESTS[1], "publicKey": "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE", "version": 7}
STORE_INDICES = [
    {"format": 1, "current": INSTALLED},
    {
        "format": 1, "current": SIGNED, "previous": INSTALLED,
        "newestVersions": {DIGESTS[2]: {"version": 7, "sha256": DIGESTS[1]}, DIGESTS[0]: {"version": 1, "sha256": DIGESTS[0]}},
    },
]  # fmt: skip


def parts(first, second):
    """Joins two files as the targets of models in two files expect them."""
    return struct.pack("<I", len(first)) + first + second


def request(body, binary=b""):
    fields = f"Inference-Header-Content-Length: {len(body)}\r\n" if binary else ""
    length = len(body) + len(binary)
    head = f"POST /v2/models/fuzz/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{fields}\r\n"
    return head.encode() + body.encode() + binary


def statement(digests, **serialization):
    """Returns the statement of a signature that lists digests by name."""
    root = hashlib.sha256(b"".join(bytes.fromhex(digest) for digest in digests.values())).hexdigest()
    options = {"method": "files", "hash_type": "sha256", "allow_symlinks": False, **serialization}
    resources = [{"name": name, "algorithm": "sha256", "digest": digest} for name, digest in digests.items()]
    value = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "signed", "digest": {"sha256": root}}],
        "predicateType": "https://model_signing/signature/v1.0",
        "predicate": {"serialization": options, "resources": resources},
    }
    return json.dumps(value).encode()


def safetensors(header, data=b""):
    return struct.pack("<Q", len(header)) + header.encode() + data


def read(*files):
    return [file.read_bytes() for file in files]


def corpora():
    """Returns the seeds of each target."""
    packages = sorted((FIXTURES / "CoreML").glob("*.mlpackage"))
    core = "Data/com.apple.CoreML"
    pickles = read(*sorted((FIXTURES / "Checkpoints").glob("*.pth")), FIXTURES / "Checkpoints/tensors.safetensors")
    models = read(FIXTURES / "format1.imprint", *(VERSION_1 / f"classifier{kind}.imprint" for kind in ["", "-float16", "-int8"]))
    kinds = ["classifier-adapters", "classifier-personalization", "detector-personalization"]
    personalizations = read(*(VERSION_1 / f"{kind}.imprint" for kind in kinds))
    binary = '{"inputs":[{"name":"values","shape":[1,4,4,3],"datatype":"FP32","parameters":{"binary_data_size":192}}]}'
    # The digests of the signed folder of the target, whose files are a.bin ("abc") and b/c.bin (empty).
    abc, empty = (hashlib.sha256(content).hexdigest() for content in [b"abc", b""])
    return {
        "model_file": models,
        "checkpoint": read(VERSION_1 / "classifier-checkpoint.safetensors"),
        "personalization": personalizations,
        "safetensors": [
            *personalizations, *read(FIXTURES / "Checkpoints/tensors.safetensors"), safetensors("{}"),
            safetensors('{"__metadata__":{"k\\u0041":"v"},"t":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]}}  ', bytes(4)),
        ],
        "onnx": read(*sorted((FIXTURES / "ONNX").glob("*.onnx"))),
        "core_ml": read(*sorted((FIXTURES / "CoreML").glob("*.mlmodel"))),
        "core_ml_package": [parts(*read(path / core / "model.mlmodel", path / core / "weights/weight.bin")) for path in packages],
        "caffe": [
            parts(*read(path, path.with_suffix(".caffemodel"))) for path in sorted((FIXTURES / "Caffe").glob("*.prototxt"))
        ],
        # The first byte selects the architecture.
        "pytorch": [bytes([index]) + content for index, content in enumerate(pickles)],
        # A root table with a version.
        "tflite": [struct.pack("<I4sHHHHiI", 16, b"TFL3", 8, 8, 4, 0, 8, 3)],
        "annotations": ANNOTATIONS,
        "label_list": [text.encode() for text in LABEL_LISTS],
        "drawing_recipe": read(*sorted((FUZZING.parent / "datasets").glob("*.json"))),
        "request": [text.encode() for text in REQUESTS] + [request(body) for body in BODIES] + [request(binary, bytes(192))],
        "signed_statement": [
            statement({"a.bin": abc, "b/c.bin": empty}), statement({"a.bin": abc}, ignore_paths=[".git", "b"]),
            statement({"a.bin:0:3": abc, "b/c.bin:0:0": empty}, method="shards", shard_size=1024), statement({".": abc}),
            statement({"e\u0301": abc, "\u00e9": empty}),
        ],
        "store_index": [json.dumps(index).encode() for index in STORE_INDICES],
        **{target: read(*sorted((FUZZING / "seeds" / target).iterdir())) for target in STORED},
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--unpacked", action="store_true")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for target, seeds in corpora().items():
        corpus = options.output / f"fuzz_{target}_seed_corpus"
        seeds = [seed for seed in seeds if len(seed) <= LIMIT]
        if options.unpacked:
            shutil.rmtree(corpus, ignore_errors=True)
            corpus.mkdir()
            for index, seed in enumerate(seeds):
                (corpus / f"{index:02}").write_bytes(seed)
        else:
            with zipfile.ZipFile(corpus.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
                for index, seed in enumerate(seeds):
                    # The same bytes for the same seeds.
                    archive.writestr(zipfile.ZipInfo(f"{index:02}"), seed)
        texts = [(FUZZING / f"dictionaries/{name}.dict").read_text() for name in DICTIONARIES[target]]
        (options.output / f"fuzz_{target}.dict").write_text("".join(texts))


main()
