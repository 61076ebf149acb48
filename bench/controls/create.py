"""From ``ml online-deployment create`` to the first 200 of a new deployment.

``cold``: the first deployment of a new home, with the files of Triton, ONNX Runtime and the model
out of the page cache as far as nobody else has them open. ``warm``: the next one.
"""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from pathlib import Path
from typing import Any

from bench import product
from bench.controls.effect import Watch

_FILES = ("pytriton", "nvidia_pytriton", "onnxruntime", "numpy", "tritonclient")


def evict() -> None:
    """Ask the kernel to forget these files, as far as nobody has them mapped. Needs no rights."""
    roots = [product.EXAMPLE]
    for name in _FILES:
        found = importlib.util.find_spec(name)
        roots += [Path(place) for place in (found.submodule_search_locations or ())] if found else []
    os.sync()
    for root in roots:
        for file in root.rglob("*"):
            if file.is_file():
                descriptor = os.open(file, os.O_RDONLY)
                try:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(descriptor)


def measure(work: Path) -> list[dict[str, Any]]:
    """Rows."""
    rows = []
    with product.running(work) as server:
        port = int(server.ml("server", "status", "--query", "scoring_url", "-o", "tsv").rpartition(":")[2].strip("/"))
        trust = Path(server.ml("server", "status", "--query", "ca_file", "-o", "tsv"))
        _, key = server.endpoint()
        for what, name in (("cold", "blue"), ("warm", "green")):
            if what == "cold":
                evict()
            rows.append({"start": what, "deployment": name, **created(server, port, trust, key, name)})
    return rows


def created(server: product.Product, port: int, trust: Path, key: str, name: str) -> dict[str, float]:
    """Seconds to the first answer of 200 by the pinned deployment, and to the end of the
    command."""
    ended: list[float] = []

    def create() -> None:
        server.ml("online-deployment", "create", "-f", f"{name}-deployment.yml", "--set", "instance_count=1")
        ended.append(time.perf_counter())

    began = time.perf_counter()
    command = threading.Thread(target=create)
    command.start()
    try:
        with Watch(port, trust, "pictures", key, path="v2/models/model_1", pin=name) as watch:
            watch.until(name, 120)
            first = time.perf_counter() - began
    finally:
        command.join()
    return {"first_200_s": round(first, 2), "command_s": round(ended[0] - began, 2)}
