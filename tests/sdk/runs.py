"""One run of all steps for each release of the SDK, all at once against one server.

Decides what a run is given: files of its own, and the environment after ``eval "$(ml server env)"``
and nothing else. Must not know what steps do.
"""

from __future__ import annotations

import ast
import json
import signal
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx

from amphitrite.schemas.names import workspace_id

from ..system.models import REQUEST, adding
from ..system.product import Product
from . import clusters, environments

STEPS = Path(__file__).parent / "steps"
DEADLINE_S = 420.0
#: Directories with a model, each with another number that it adds.
MODELS = ("one", "two", "three", "four", "five", "six", "seven")
#: Versions of the model ``many``; a page has 100.
MANY = 130


@dataclass(frozen=True)
class Outcome:
    ok: bool
    detail: str
    s: float


Found = dict[str, dict[str, Outcome]]


def names(release: str) -> list[str]:
    """The steps of a release, read from the sources: they can only be imported where the SDK is."""
    marks = {"step", "newest_step"} if release == environments.NEWEST else {"step"}
    trees = [ast.parse(file.read_text()) for file in sorted(STEPS.glob("*.py"))]
    return [
        node.name
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(mark, ast.Name) and mark.id in marks for mark in node.decorator_list)
    ]


def run(product: Product, root: Path) -> Found:
    """The outcome of every step of every release."""
    shared = root / "shared"
    adding(shared / "crossing", 0.5)
    _many_versions(product)
    pythons = environments.provide()
    with (
        clusters.served(root / "clusters", product.home / "certificates") as variables,
        ThreadPoolExecutor(len(pythons)) as pool,
    ):
        arguments = {
            release: {**_files(root / release, at), "shared": str(shared), "clusters": variables}
            for at, release in enumerate(pythons)
        }
        outcomes = pool.map(lambda release: _run(product, pythons[release], arguments[release]), pythons)
        return dict(zip(pythons, outcomes, strict=True))


def _many_versions(product: Product) -> None:
    """A model with more versions than the server answers at once, registered by REST: the SDK would
    take a minute."""
    workspace = workspace_id("local", "local", "local")
    blob = f"/storage/local/azureml-blobstore/LocalUpload/many/{MANY}"
    uri = f"azureml:/{workspace.lower()}/datastores/workspaceblobstore/paths/LocalUpload/many/{MANY}"
    with httpx.Client(
        base_url=product.api_url,
        headers={"Authorization": f"Bearer {product.token()}"},
        verify=ssl.create_default_context(cafile=str(product.ca_file)),
    ) as client:
        client.put(blob, content=b"one of many", headers={"x-ms-blob-type": "BlockBlob"}).raise_for_status()
        for version in range(1, MANY + 1):
            body = {"properties": {"modelType": "custom_model", "modelUri": uri}}
            client.put(f"{workspace}/models/many/versions/{version}", json=body).raise_for_status()


def _files(files: Path, at: int) -> dict[str, object]:
    """Files of the run's own: content is addressed by its digest, and runs must not meet by
    chance."""
    adds = {name: number + at / 4 for number, name in enumerate(MODELS, start=1)}
    for name, number in adds.items():
        adding(files / name, number)
    (files / "weights.bin").write_bytes(files.name.encode() * 1000)
    (files / "request.json").write_bytes(REQUEST)
    return {
        "release": files.name,
        "newest": files.name == environments.NEWEST,
        "files": str(files),
        "adds": adds,
        "python": sys.executable,
    }


def _run(product: Product, python: Path, arguments: dict[str, object]) -> dict[str, Outcome]:
    """What became of the steps of one release; one that has not ended by the deadline says where
    everybody stood."""
    script = 'eval "$(ml server env)" && exec "$0" -m steps'
    files = Path(str(arguments["files"]))
    with (files / "out").open("w") as out, (files / "err").open("w") as err:
        process = subprocess.Popen(
            ["bash", "-c", script, str(python)],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            env=product.environment,
            cwd=STEPS.parent,
            text=True,
        )
        try:
            process.communicate(json.dumps(arguments), timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # It writes the stack of each of its threads.
            process.wait()
    said = (files / "err").read_text(errors="replace")[-20_000:]
    lines = [json.loads(line) for line in (files / "out").read_text().splitlines()]
    found = {line["step"]: Outcome(line["ok"], line["detail"], line["s"]) for line in lines}
    lost = Outcome(False, f"the process ended with {process.returncode} before this step had\n{said}", 0.0)
    return {**dict.fromkeys(names(files.name), lost), **found}
