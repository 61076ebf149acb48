"""The examples of ``--help``, run one after the other as a user would, in one home.

Those of computes need a cluster: ``tests/cli/test_help_pages.py`` runs them.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from amphitrite.cli.session import help_pages

from .. import tiers
from .models import REQUEST, adding
from .product import Product

pytestmark = pytest.mark.serving

DOCUMENTS = Path(__file__).resolve().parents[2] / "examples" / "single-model"
ENVIRONMENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/environment.schema.json
name: triton
image: nvcr.io/nvidia/tritonserver:24.08-py3
inference_config:
  liveness_route: {port: 8000, path: /v2/health/live}
  readiness_route: {port: 8000, path: /v2/health/ready}
  scoring_route: {port: 8000, path: /}
"""
#: What only a shell understands: substitutions and variables.
_FOR_A_SHELL = re.compile(r"[$<~]")


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    """Nothing has been started. The directory is that of the example, with a smaller model."""
    tiers.needs("serving")
    product = Product(tmp_path)
    product.environment |= {
        "ML_PORT": str(product.port),
        "ML_SCORING_PORT": str(product.scoring_port),
        "NEW_DATABASE": f"sqlite:///{tmp_path}/new.db",
    }
    for document in DOCUMENTS.glob("*.yml"):
        shutil.copy(document, product.files)
    adding(product.files / "models", 1, "model_1")
    product.file("request.json", REQUEST.decode())
    product.file("environment.yml", ENVIRONMENT)
    try:
        yield product
    finally:
        product.destroy()


def test_every_example_works(product: Product) -> None:
    commands = [one.command for one in help_pages.examples() if not one.command.startswith("ml compute")]
    failed = {command: said for command in commands if (said := failure(product, command))}
    assert failed == {}
    assert product.left_over() == []


def failure(product: Product, text: str) -> str:
    """What a command said when it failed; empty if it has not."""
    if "logs" in text and text.endswith(" -f"):
        return followed(product, text)
    if _FOR_A_SHELL.search(text):
        done = subprocess.run(
            ["bash", "-c", text],
            env=product.environment,
            cwd=product.files,
            capture_output=True,
            text=True,
            timeout=180,
        )
    else:
        done = product.run(*shlex.split(text)[1:], check=False)
    # In `eval "$(...)"` nothing but the message says that it failed.
    return f"{done.returncode}: {done.stdout}{done.stderr}" if done.returncode or "error: " in done.stderr else ""


def followed(product: Product, text: str) -> str:
    """The same for a command that only Ctrl-C ends, once it has printed a line.

    A shell starts what it runs in the background with SIGINT ignored, and children inherit that:
    ``env`` gives the command the signal of a terminal.
    """
    with subprocess.Popen(
        ["env", "--default-signal=INT", "bash", "-c", f"exec {text}"],
        env=product.environment,
        cwd=product.files,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
        return "" if line and process.returncode == 130 else f"{process.returncode}: {line}{process.stderr.read()}"
