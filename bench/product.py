"""A product to measure: a home of its own, driven by the command ``ml`` alone.

Decides how a benchmark starts and stops one, and how it puts load on it. Must not know what is
measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "single-model"
GENERATOR = ROOT / "tests" / "load" / "closed_loop.py"
ML = Path(sys.executable).with_name("ml")


class Unavailable(Exception):
    """This machine cannot run the benchmark; the message says why and what would help."""


class Product:
    """One running server with the example's endpoint ``pictures``."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.environment = {**os.environ, "ML_HOME": str(work / "home")}
        for name in ("ML_SERVER_URL", "ML_SUBSCRIPTION", "ML_RESOURCE_GROUP", "ML_WORKSPACE"):
            self.environment.pop(name, None)

    def ml(self, *arguments: str) -> str:
        """What ``ml`` prints. Raises CalledProcessError when it fails; its messages go to the
        terminal."""
        done = subprocess.run(
            [ML, *arguments], env=self.environment, cwd=EXAMPLE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def endpoint(self) -> tuple[str, str]:
        """Scoring URI and primary key."""
        uri = self.ml("online-endpoint", "show", "-n", "pictures", "--query", "scoring_uri", "-o", "tsv")
        key = self.ml("online-endpoint", "get-credentials", "-n", "pictures", "--query", "primaryKey", "-o", "tsv")
        return uri, key

    def load(self, path: str, *options: str) -> list[str]:
        """The command line of a closed loop on ``path`` below the scoring URI, which prints its
        report as JSON."""
        uri, key = self.endpoint()
        trust = self.ml("server", "status", "--query", "ca_file", "-o", "tsv")
        command = [sys.executable, str(GENERATOR), "--json", "--url", uri + path, "--cafile", trust]
        return [*command, "--header", f"Authorization: Bearer {key}", *options]

    def measure(self, path: str, *options: str) -> dict[str, Any]:
        """The report of one closed loop; failed requests are in it, not raised."""
        done = subprocess.run(self.load(path, *options), stdout=subprocess.PIPE, text=True, check=False)
        report: dict[str, Any] = json.loads(done.stdout)
        return report


def free_ports() -> tuple[str, str]:
    """Two ports on which nobody listens."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1]), str(other.getsockname()[1])


@contextlib.contextmanager
def running(work: Path, *deployments: str) -> Iterator[Product]:
    """The example with these deployments, all traffic on the first; stopped at the end. Raises
    Unavailable."""
    if sys.platform != "linux":
        raise Unavailable("serving needs Linux")
    if not ML.exists():
        raise Unavailable(f"{ML} is missing: make install")
    product = Product(work)
    port, scoring_port = free_ports()
    product.ml("server", "start", "-d", "--port", port, "--scoring-port", scoring_port)
    try:
        product.ml("model", "create", "-f", "model.yml")
        product.ml("online-endpoint", "create", "-f", "endpoint.yml")
        for name in deployments:
            product.ml("online-deployment", "create", "-f", f"{name}-deployment.yml")
        if deployments:
            product.ml("online-endpoint", "update", "-n", "pictures", "--traffic", f"{deployments[0]}=100")
        yield product
    finally:
        product.ml("server", "stop")
        shutil.rmtree(work / "home", ignore_errors=True)
