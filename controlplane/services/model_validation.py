"""Whether a Triton would load what is about to be registered as a ``triton_model``.

Decides by which server models are judged: where instances can run on this machine alone, by its Triton; where
clusters are attached, only by what holds for every Triton. Must not know the rules (``schemas.repository``) or where
content lies."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

from amphitrite.dataplane.triton import installation
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.repository import ANY_SERVER, Repository, Server, errors, validate
from amphitrite.schemas.repository.files import onnx_releases


def check(files: Repository, server: Server) -> None:
    """Raises Error UserError with a violation of ``path`` for everything that keeps this server from loading the
    files."""
    found = errors(validate(files, server=server))
    if not found:
        return
    raise Error(
        "UserError",
        "Triton would not load this model: " + "; ".join(str(finding) for finding in found[:3]),
        target="path",
        hint=next((finding.hint for finding in found if finding.hint), None)
        or "ml model validate PATH shows everything",
        violations=[Violation(("path",), str(finding), finding.hint) for finding in found],
    )


def server(machine: Mapping[str, str], on_clusters: bool) -> Server:
    """What models are judged by. ``machine``: the environment, which names the Triton here; ``on_clusters``: instances
    may run on a cluster, whose image has what it has."""
    if on_clusters:
        return ANY_SERVER
    try:
        found = installation.locate(machine)
    except Error:  # Without a Triton nothing is started here; whoever starts an instance says so.
        return ANY_SERVER
    if found.stub is not None:
        return Server(onnxruntime=onnx_releases.installed(), has_module=has_module)
    return Server(backends=_backends(found.backends), onnxruntime_is_ours=False)


def has_module(name: str) -> bool:
    """The stub of a Python model runs with this environment's packages. Nothing is imported."""
    try:
        return name in sys.builtin_module_names or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _backends(directory: Path) -> frozenset[str] | None:
    """Of a full installation: one directory each."""
    try:
        return frozenset(entry.name for entry in directory.iterdir() if entry.is_dir()) or None
    except OSError:
        return None
