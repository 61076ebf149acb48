"""Score one picture with the model of this example and print what is in it.

A client like any other: it talks to the endpoint with NVIDIA's tritonclient over HTTPS, sends the
endpoint's key as a bearer token and the picture as a binary tensor. It knows a scoring URI, a key
and a picture, nothing of Amphitrite.

    export AMPHITRITE_KEY=<primary or secondary key>
    python score.py --scoring-uri https://HOST:PORT/endpoints/pictures/ chelsea.png
"""

from __future__ import annotations

import argparse
import os
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import tritonclient.http as triton
from numpy.typing import NDArray
from PIL import Image
from tritonclient.utils import InferenceServerException

HERE = Path(__file__).resolve().parent
MODEL, INPUT, OUTPUT = "model_1", "data_0", "fc6_1"
SIDE = 224  # pixels; what the network was trained with


def preprocess(picture: Path) -> NDArray[np.float32]:
    """The whole picture as the network wants it: [1, 3, 224, 224], RGB, 0..255 scaled to -1..1.

    The picture is squeezed, not cropped: a crop would cut off what tells one cat from another.
    """
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR), np.float32)
    return np.ascontiguousarray((pixels / 128 - 1).transpose(2, 0, 1)[np.newaxis])


def best(logits: NDArray[np.float32], labels: list[str]) -> tuple[str, float]:
    """The label with the highest score and its probability (softmax over all classes)."""
    odds = np.exp(logits - logits.max())
    index = int(odds.argmax())
    return labels[index], float(odds[index] / odds.sum())


def trust() -> dict[str, str]:
    """What the server's certificate is verified against: the environment's bundle, else the
    system's roots."""
    bundle = os.environ.get("SSL_CERT_FILE") or os.environ.get("REQUESTS_CA_BUNDLE")
    return {"ca_certs": bundle} if bundle else {}


def infer(scoring_uri: str, key: str, deployment: str | None, batch: NDArray[np.float32]) -> NDArray[np.float32]:
    """Logits of one picture. ``deployment`` pins the request; None lets the endpoint's traffic
    split choose."""
    address = urlsplit(scoring_uri)
    headers = {"Authorization": f"Bearer {key}"}
    if deployment:
        headers["azureml-model-deployment"] = deployment
    tensor = triton.InferInput(INPUT, list(batch.shape), "FP32")
    tensor.set_data_from_numpy(batch, binary_data=True)
    client = triton.InferenceServerClient(f"{address.netloc}{address.path}", ssl=True, ssl_options=trust())
    try:
        answer = client.infer(
            MODEL, [tensor], outputs=[triton.InferRequestedOutput(OUTPUT, binary_data=True)], headers=headers
        )
    finally:
        client.close()
    logits: NDArray[np.float32] = answer.as_numpy(OUTPUT)[0]
    return logits


def main() -> int:
    parser = argparse.ArgumentParser(description="Say what is in a picture.")
    parser.add_argument("picture", nargs="?", type=Path, default=HERE / "chelsea.png")
    parser.add_argument("--scoring-uri", required=True, help="scoring_uri of the endpoint")
    parser.add_argument("--key", help="key of the endpoint (default: the environment's AMPHITRITE_KEY)")
    parser.add_argument("--deployment", help="pin the request to this deployment")
    arguments = parser.parse_args()
    # From the environment rather than from the command line, which every user of the machine can
    # list.
    key = arguments.key or os.environ.get("AMPHITRITE_KEY")
    if not key:
        parser.error("no key: set AMPHITRITE_KEY or give --key; ml online-endpoint get-credentials prints it")
    if urlsplit(arguments.scoring_uri).scheme != "https":
        parser.error(f"--scoring-uri must start with https://, not {arguments.scoring_uri!r}")

    labels = (HERE / "imagenet-labels.txt").read_text(encoding="utf-8").splitlines()
    try:
        logits = infer(arguments.scoring_uri, key, arguments.deployment, preprocess(arguments.picture))
    except InferenceServerException as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 1
    except OSError as exc:  # no such picture, nobody listens, a certificate that is not trusted
        print(f"error: {exc}", file=sys.stderr)
        if isinstance(exc, ssl.SSLCertVerificationError):
            print('hint: SSL_CERT_FILE must name the CA of the server: eval "$(ml server env)"', file=sys.stderr)
        return 1
    label, probability = best(logits, labels)
    print(f"{label} {probability:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
