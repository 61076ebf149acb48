"""Requests a second and latency at the scoring address, through Envoy and Triton, with TLS and key.

``metadata`` is a GET of the model's metadata: the path without the model. ``picture`` is one 224 x 224 picture as a
binary tensor (602 kB). Client, proxy and model share the machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.http as triton

from bench import product

CONNECTIONS = (1, 8, 32)


def picture(file: Path) -> list[str]:
    """Options of the load generator for one inference on random pixels."""
    batch = np.random.default_rng(0).uniform(-1, 1, (1, 3, 224, 224)).astype(np.float32)
    tensor = triton.InferInput("data_0", list(batch.shape), "FP32")
    tensor.set_data_from_numpy(batch, binary_data=True)
    output = triton.InferRequestedOutput("fc6_1", binary_data=True)
    body, header_length = triton.InferenceServerClient.generate_request_body([tensor], outputs=[output])
    file.write_bytes(body)
    return ["--body-file", str(file), "--header", f"Inference-Header-Content-Length: {header_length}"]


def run(work: Path) -> list[dict[str, Any]]:
    kinds: dict[str, tuple[str, list[str], int]] = {
        "metadata": ("v2/models/model_1", [], 5_000),
        "picture": ("v2/models/model_1/infer", picture(work / "picture"), 400),
    }
    rows = []
    with product.running(work, "blue") as server:
        for kind, (path, options, requests) in kinds.items():
            server.measure(path, *options, "--requests", "50")  # the first requests warm caches and batch sizes
            for connections in CONNECTIONS:
                report = server.measure(path, *options, "--connections", str(connections), "--requests", str(requests))
                rows.append(
                    {
                        "request": kind,
                        "connections": connections,
                        "requests": report["requests"],
                        "failed": report["failed"],
                        "requests_per_s": report["requests_per_s"],
                        "p50_ms": report["latency_ms"]["p50"],
                        "p99_ms": report["latency_ms"]["p99"],
                    }
                )
    return rows
