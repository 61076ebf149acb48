"""Rules for ONNX files: whether ONNX Runtime can load one.

Decides the problems of the file itself: truncated, too new, unknown operators, missing external
weights. Must not know configurations.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files as resources
from posixpath import normpath

from amphitrite.schemas.repository.files import onnx_releases
from amphitrite.schemas.repository.files.file_listing import Repository, TooMuch
from amphitrite.schemas.repository.files.findings import listed
from amphitrite.schemas.repository.files.onnx_releases import Limits, Release
from amphitrite.schemas.repository.models.rule_report import Report
from amphitrite.schemas.repository.onnx import graph_file
from amphitrite.schemas.repository.onnx.graph_file import Graph
from amphitrite.schemas.repository.onnx.protobuf_wire import Damaged

#: Domains with operators of ONNX Runtime that no table lists.
_OPEN_DOMAINS = ("com.microsoft", "com.ms.", "org.pytorch.aten", "ai.onnx.preview", "ai.onnx.training", "com.nvidia")
_BYTES_MAX = 2**31 - 1
_LFS = b"version https://git-lfs.github.com/spec/"


def read(report: Report, files: Repository, path: str, release: Release | None = None) -> Graph | None:
    """The graph of ``path``; None, with a finding, if ONNX Runtime would not load it.

    ``release``: of ONNX Runtime; None: the newest known one.
    """
    size = files.sizes[path]
    before = len(report.findings)
    try:
        with files.open(path) as stream:
            start = stream.read(len(_LFS))
            stream.seek(0)
            if start == _LFS:
                report.file(
                    path, "git-lfs", f"`{path}` is a Git LFS pointer, not the model itself", fix="run `git lfs pull`"
                )
                return None
            graph = graph_file.read(stream, size)
    except Damaged:
        report.file(path, "onnx-damaged", f"`{path}` is not an ONNX file, or is truncated", found=f"{size} bytes",
                    fix="export or copy it again")  # fmt: skip
        return None
    except TooMuch:
        report.file(path, "onnx-large", f"`{path}` is too large to be checked", severity="warning")
        return None
    except OSError as exc:
        report.file(path, "unreadable", f"cannot read `{path}`: {exc.strerror or exc}")
        return None
    if not graph.has_graph:
        report.file(
            path, "onnx-damaged", f"`{path}` has no graph", found=f"{size} bytes", fix="export or copy it again"
        )
        return None
    if size > _BYTES_MAX:
        report.file(
            path,
            "onnx-large",
            "the file is too large for protobuf",
            found=f"{size} bytes",
            allowed=f"at most {_BYTES_MAX} bytes",
            fix="export it with external data",
        )
    _check_versions(report, path, graph, onnx_releases.limits(release))
    _check_operators(report, path, graph)
    _check_external(report, files, path, graph)
    if graph.undefined:
        report.file(path, "onnx-graph", "nodes or outputs use values that the graph does not produce",
                    found=listed(graph.undefined), fix="export it again")  # fmt: skip
    return graph if len(report.findings) == before else None


def _check_versions(report: Report, path: str, graph: Graph, limits: Limits) -> None:
    if graph.ir_version > limits.ir_version:
        report.file(
            path,
            "onnx-version",
            f"the file's format is newer than {limits.shown} reads",
            found=f"IR version {graph.ir_version}",
            allowed=f"at most {limits.ir_version}",
            fix="export it with an older onnx",
        )
    if not graph.opsets:
        report.file(path, "onnx-version", "the file does not say which operator set it uses", fix="export it again")
    for domain, version in sorted(graph.opsets.items()):
        newest = limits.opsets.get(domain)
        if newest is not None and version > newest:
            report.file(
                path,
                "onnx-version",
                f"operator set {version} of {domain or 'ai.onnx'} is newer than {limits.shown} reads",
                allowed=f"at most {newest}",
                fix=f"export it with opset_version={newest}",
            )


def _check_operators(report: Report, path: str, graph: Graph) -> None:
    opsets = {"" if domain == "ai.onnx" else domain: version for domain, version in graph.opsets.items()}
    for (node_domain, name), count in sorted(graph.operators.items()):
        domain = "" if node_domain == "ai.onnx" else node_domain
        if (
            (node_domain, name) in graph.functions
            or (domain, name) in graph.functions
            or domain.startswith(_OPEN_DOMAINS)
        ):
            continue
        operator = f"{domain or 'ai.onnx'}.{name}"
        nodes = f"{count} node{'s' if count != 1 else ''}"
        known = _operators().get(domain)
        if known is None or name not in known:
            report.file(path, "onnx-operator", f"ONNX Runtime has no operator {operator}", found=nodes,
                        fix="export the model with standard ONNX operators")  # fmt: skip
            continue
        since, *removed = known[name]
        opset = opsets.get(domain)
        if opset is None:
            if domain:
                report.file(
                    path,
                    "onnx-operator",
                    f"the file does not state the operator set of {domain}",
                    found=f"{operator}, {nodes}",
                    fix="export it again",
                )
        elif opset < since or (removed and opset >= removed[0]):
            report.file(
                path,
                "onnx-operator",
                f"operator set {opset} does not have the operator {operator}",
                found=nodes,
                allowed=f"{since} or later" + (f", before {removed[0]}" if removed else ""),
                fix="export it with another opset_version",
            )


def _check_external(report: Report, files: Repository, path: str, graph: Graph) -> None:
    directory = path.rpartition("/")[0]
    missing: dict[str, int] = {}
    for weights in graph.external:
        beside = normpath(f"{directory}/{weights.location}") if weights.location else directory
        if weights.location.startswith("/") or not f"{beside}/".startswith(f"{directory}/"):
            report.file(
                path,
                "external-data",
                "the weights are outside the model's directory",
                found=f'"{weights.location}"',
                fix="export the model with the weights in its own directory",
            )
            return
        size = files.sizes.get(beside)
        if size is None:
            missing[weights.location] = missing.get(weights.location, 0) + 1
        elif weights.offset + (weights.length or 0) > size:
            report.file(
                beside,
                "external-data",
                f"`{beside}` is truncated: it ends before the weights of `{weights.name}`",
                found=f"{size} bytes",
                allowed=f"{weights.offset + (weights.length or 0)} or more",
                fix="copy it again",
            )
            return
    for location, tensors in sorted(missing.items()):
        report.file(
            path,
            "external-data",
            f"the file `{location}` with the weights of {tensors} tensor{'s' if tensors != 1 else ''} does not exist",
            fix=f"add it to the directory of {path}",
        )


@cache
def _operators() -> dict[str, dict[str, list[int]]]:
    text = (resources(__package__) / "onnx_operators.json").read_text(encoding="utf-8")
    table: dict[str, dict[str, list[int]]] = json.loads(text)
    return table
