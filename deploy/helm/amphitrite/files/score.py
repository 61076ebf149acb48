"""``helm test``: a tiny model from nothing to an answer through the release's own Service, and back
to nothing.

Decides what a working release must be able to do for a user. Uses the command ``ml`` as a user
does; its environment names the control plane (ML_SERVER_URL, ML_TOKEN, SSL_CERT_FILE). Ends with 0
and one line, or with 1 and the reason.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

WORK = Path("/tmp/test")
DEADLINE = time.monotonic() + float(os.environ["TIMEOUT_S"])
NAME = f"helm-test-{secrets.token_hex(4)}"
#: A version cannot be changed: another model needs another number.
MODEL, VERSION = "helm-test-doubling", "1"


def ml(*arguments: str, check: bool = True, quiet: bool = False) -> str:
    """What the command prints on stdout; it shows its own words on stderr."""
    left = max(1.0, DEADLINE - time.monotonic())
    said = subprocess.DEVNULL if quiet else None
    done = subprocess.run(["ml", *arguments], stdout=subprocess.PIPE, stderr=said, text=True, timeout=left, check=False)
    if check and done.returncode != 0:
        raise SystemExit(f"failed: ml {' '.join(arguments)}")
    return done.stdout.strip()


def document(file: str, **fields: object) -> str:
    """A document as ``ml -f`` takes it: JSON is YAML."""
    path = WORK / f"{file}.yml"
    path.write_text(json.dumps(fields))
    return str(path)


def register() -> None:
    repository = WORK / "models" / "doubling" / "1"
    repository.mkdir(parents=True)
    shutil.copyfile("/test/doubling.onnx", repository / "model.onnx")
    (repository.parent / "config.pbtxt").write_text("instance_group { count: 1 kind: KIND_CPU }\n")
    if ml("model", "show", "--name", MODEL, "--version", VERSION, check=False, quiet=True):
        ml("model", "restore", "--name", MODEL, "--version", VERSION)
        return
    path = str(WORK / "models")
    ml("model", "create", "--name", MODEL, "--version", VERSION, "--type", "triton_model", "--path", path)


class Scoring(http.client.HTTPSConnection):
    """Connects to the Service whatever its certificate's name is: SCORING_NAME is the one that must
    be in it."""

    def connect(self) -> None:
        plain = socket.create_connection((os.environ["SCORING_HOST"], int(os.environ["SCORING_PORT"])), timeout=10)
        # From an empty file come no roots: then the certificate is a public one.
        authority = Path("/test-ca/ca.crt")
        own = str(authority) if authority.exists() and authority.stat().st_size else None
        context = ssl.create_default_context(cafile=own)
        self.sock = context.wrap_socket(plain, server_hostname=os.environ["SCORING_NAME"])


def score(key: str) -> None:
    inputs = [{"name": "number", "datatype": "FP32", "shape": [2, 1], "data": [21.0, 1.5]}]
    connection = Scoring(os.environ["SCORING_NAME"])
    connection.request(
        "POST",
        f"/endpoints/{NAME}/v2/models/doubling/infer",
        json.dumps({"inputs": inputs}),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"failed: scoring answered {answer.status}: {body[:500]!r}")
    data = json.loads(body)["outputs"][0]["data"]
    if data != [42.0, 3.0]:
        raise SystemExit(f"failed: twice 21 and 1.5 is said to be {data}")
    print(f"scored: twice 21 is {data[0]:g}, by deployment {answer.headers['azureml-model-deployment']}")


def main() -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    register()
    try:
        ml("online-endpoint", "create", "-f", document("endpoint", name=NAME, auth_mode="key"))
        blue = document(
            "blue",
            name="blue",
            endpoint_name=NAME,
            model=f"azureml:{MODEL}:{VERSION}",
            instance_type=os.environ["INSTANCE_TYPE"],
            instance_count=1,
        )
        ml("online-deployment", "create", "-f", blue, "--all-traffic")
        score(ml("online-endpoint", "get-credentials", "--name", NAME, "--query", "primaryKey", "-o", "tsv"))
    finally:
        ml("online-endpoint", "delete", "--name", NAME, "--yes", check=False)
        ml("model", "archive", "--name", MODEL, "--version", VERSION, check=False)


if __name__ == "__main__":
    sys.exit(main())
