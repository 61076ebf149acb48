"""The chart, rendered by the real Helm.

Decides where the program comes from: PATH, the directory of a running test cluster, or the archive
that the cluster is made of. Must not know what a render should look like.
"""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from .. import tiers

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "amphitrite"
EXAMPLES = {path.stem: path for path in sorted((CHART / "examples").glob("*.yaml"))}
#: The API groups that a cluster may have besides Kubernetes' own.
MONITORING = "monitoring.coreos.com/v1"
KUBERNETES = "1.35.0"
HOW_TO = "needs helm 3: put it on PATH (https://helm.sh/docs/intro/install), or start a test cluster"
TIMEOUT_S = 60

Document = dict[str, Any]


@cache
def binary() -> Path:
    """Skips the test where there is no Helm."""
    tiers.needs("helm")
    beside = Path(os.environ.get("KUBE_DIR", "/tmp/amphitrite-kube")) / "bin" / "helm"
    if found := shutil.which("helm"):
        return Path(found)
    if beside.is_file():
        return beside
    archives = sorted((ROOT.parent / "shared" / "cluster").glob("kubernetes-*.tar.xz"))
    if not archives:
        pytest.skip(HOW_TO)
    return _extracted(archives[-1])


def _extracted(archive: Path) -> Path:
    """Helm out of the archive, once for each archive on a machine; appears whole or not at all."""
    target = Path(tempfile.gettempdir()) / f"amphitrite-helm-{os.getuid()}" / archive.stem
    if not target.is_file():
        target.parent.mkdir(mode=0o700, exist_ok=True)
        with lzma.open(archive) as unpacked, tarfile.open(fileobj=unpacked) as members:
            source = members.extractfile("helm")
            assert source is not None
            with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
                shutil.copyfileobj(source, file)
        Path(file.name).chmod(0o700)
        Path(file.name).rename(target)
    return target


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(binary()), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def template(*arguments: str | Path, kubernetes: str = KUBERNETES) -> subprocess.CompletedProcess[str]:
    """``helm template`` of release ``amphitrite`` in namespace ``ml``."""
    return helm("template", "amphitrite", CHART, "--namespace", "ml", "--kube-version", kubernetes, *arguments)


def documents(*arguments: str | Path) -> list[Document]:
    """What a render consists of, sorted by kind and name."""
    done = template(*arguments)
    assert done.returncode == 0, done.stderr
    found = [document for document in yaml.safe_load_all(done.stdout) if document is not None]
    return sorted(found, key=lambda document: (document["kind"], document["metadata"]["name"]))


@cache
def example(name: str) -> list[Document]:
    """The render of one of the chart's own examples, on a cluster that has the Prometheus
    operator."""
    return documents("--values", EXAMPLES[name], "--api-versions", MONITORING)


def pods(rendered: list[Document]) -> dict[str, Document]:
    """``kind/name`` -> the PodSpec of everything that makes pods."""
    found = {}
    for document in rendered:
        spec = document if document["kind"] == "Pod" else document.get("spec", {}).get("template", {})
        if "containers" in spec.get("spec", {}):
            found[f"{document['kind']}/{document['metadata']['name']}"] = spec["spec"]
    return found


def containers(rendered: list[Document]) -> dict[str, Document]:
    return {
        f"{where}/{container['name']}": container
        for where, spec in pods(rendered).items()
        for container in (*spec.get("initContainers", ()), *spec["containers"])
    }


def one(rendered: list[Document], kind: str, name: str) -> Document:
    (found,) = (d for d in rendered if (d["kind"], d["metadata"]["name"]) == (kind, name))
    return found
