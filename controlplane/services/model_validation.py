"""Whether Triton would load a model that is registered as a ``triton_model``.

Decides which server the check assumes. If instances run on this machine alone, it is the Triton of
this machine. If clusters are attached, only the rules that hold for every Triton apply. Must not
know the rules (``schemas.repository``) or where content is stored.
"""

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
    """Raises Error("UserError") with a violation of ``path`` for each reason why ``server`` cannot
    load the files."""
    findings = errors(validate(files, server=server))
    if not findings:
        return
    raise Error(
        "UserError",
        "Triton cannot load this model: " + "; ".join(str(finding) for finding in findings[:3]),
        target="path",
        hint=next((finding.hint for finding in findings if finding.hint), None)
        or "see all findings: ml model validate PATH",
        violations=[Violation(("path",), str(finding), finding.hint) for finding in findings],
    )


def server(machine: Mapping[str, str], on_clusters: bool) -> Server:
    """The server that models are checked for.

    ``machine``: the environment variables, which name the Triton of this machine. ``on_clusters``:
    instances may run on a cluster, whose image is unknown.
    """
    if on_clusters:
        return ANY_SERVER
    try:
        triton = installation.locate(machine)
    except Error:  # There is no Triton here. Starting an instance reports that.
        return ANY_SERVER
    if triton.stub is not None:
        return Server(onnxruntime=onnx_releases.installed(), has_module=has_module)
    return Server(backends=_backends(triton.backends), onnxruntime_is_ours=False)


def has_module(name: str) -> bool:
    """Whether this Python environment, in which Python models run, has the module. Imports nothing."""
    try:
        return name in sys.builtin_module_names or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _backends(directory: Path) -> frozenset[str] | None:
    """The backends of a full Triton installation, which has one directory for each. None if there
    are none."""
    try:
        return frozenset(entry.name for entry in directory.iterdir() if entry.is_dir()) or None
    except OSError:
        return None
