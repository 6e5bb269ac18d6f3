"""Writes the seeds of the readers of keys and signatures beside this script.

Needs OpenSSL 3 and: pip install model-signing (written against 1.1.1). The private keys protect nothing.
"""

import pathlib
import subprocess
import sys
import tempfile

folder = pathlib.Path(__file__).resolve().parent
# The key of the fuzz targets (Tests/FuzzTargets/FuzzFiles.swift): the number 1 on the curve P-256.
KEY = """\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABoAoGCCqGSM49
AwEHoUQDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/
m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
-----END EC PRIVATE KEY-----
"""
# The files of its signed folder.
FILES = {"a.bin": "abc", "b/c.bin": ""}


def run(*arguments):
    subprocess.run([str(argument) for argument in arguments], check=True, stdout=subprocess.DEVNULL)


keys = folder / "pem_key"
keys.mkdir(exist_ok=True)
for bits in [256, 384, 521]:
    private = keys / f"p{bits}.pem"
    run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:P-{bits}", "-out", private)
    run("openssl", "pkey", "-in", private, "-pubout", "-out", keys / f"p{bits}-public.pem")
# With a block of parameters before the key.
run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-out", keys / "sec1.pem")
run("openssl", "genpkey", "-algorithm", "ed25519", "-out", keys / "ed25519.pem")
run("openssl", "pkey", "-in", keys / "p256.pem", "-aes256", "-passout", "pass:seed", "-out", keys / "encrypted.pem")
(keys / "one.pem").write_text(KEY)

signatures = folder / "model_signature"
signatures.mkdir(exist_ok=True)
with tempfile.TemporaryDirectory() as temporary:
    model = pathlib.Path(temporary) / "signed"
    for name, text in FILES.items():
        (model / name).parent.mkdir(parents=True, exist_ok=True)
        (model / name).write_text(text)
    for signed, name in [(model, "folder.sig"), (model / "a.bin", "file.sig")]:
        output = signatures / name
        run(sys.executable, "-m", "model_signing", "sign", "key", signed, "--signature", output, "--private_key", keys / "one.pem")
