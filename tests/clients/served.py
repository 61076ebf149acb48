"""What the clients are asked to reach: two endpoints with the models of ``models.py``.

Decides their names and what each model answers. Must not know any client.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..system.product import Product, running
from . import models

#: Without state: all of Triton's examples but those of sequences. With: those.
SIMPLE, SEQUENCES = "simple", "sequences"
#: How long a client waits, in seconds, for ``waits_for_others``, which takes two.
PATIENCE_S = 0.3
#: How many numbers the next client gives it: one who comes with as many as another is answered with
#: that one, who came earlier.
LENGTHS = itertools.count(1)


@dataclass(frozen=True)
class Served:
    """``keys``: endpoint -> its key. ``environment``: after ``eval "$(ml server env)"``."""

    product: Product
    keys: dict[str, str]
    environment: dict[str, str]

    @property
    def address(self) -> str:
        """Host and port."""
        host, port = self.product.scoring
        return f"{host}:{port}"

    @property
    def trust(self) -> str:
        """The file with the authority to trust."""
        return str(self.product.ca_file)

    def uri(self, endpoint: str = SIMPLE) -> str:
        return f"https://{self.address}/endpoints/{endpoint}/"

    def program(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A program of a user's, whatever its end."""
        environment = {**os.environ, **self.environment, **variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def serve(root: Path) -> Iterator[Served]:
    """The endpoints, ended afterwards; for a fixture."""
    for product in running(root):
        for name, repository in ((SIMPLE, models.repository), (SEQUENCES, models.sequences)):
            files = str(repository(root / name))
            product.run("model", "create", "-n", name, "-v", "1", "-t", "triton_model", "-p", files)
            product.endpoint(name)
            product.deploy("blue", f"{name}:1", "--all-traffic", endpoint=name)
        environment = json.loads(product.run("server", "env", "--shell", "json").stdout)
        yield Served(product, {name: product.keys(name)[0] for name in (SIMPLE, SEQUENCES)}, environment)
