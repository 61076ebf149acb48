"""The corpus: what each file in ``corpus/`` says, and the repository that it describes.

Decides the form of a case and how its files come to lie on disk. Must not know Triton or the
validator.

A case is one YAML file. ``files`` gives path -> content: a text as it is, or one of
``{onnx: <recipe of graphs.py>, opset:, op:, outside:, keep: <bytes to keep of it>}``, ``{hex: …}``.
``finding`` is what the validator must say of it: place, code and words of the message. ``kills``:
whether Triton dies or hangs of it, so that it can share no server. ``refused_from``: the first
release of ONNX Runtime that refuses it; the record is of a newer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from amphitrite.dataplane.triton.cpu_configuration import on_cpu
from amphitrite.dataplane.triton.repository_layout import empty_directories
from amphitrite.schemas.repository.files import findings
from amphitrite.schemas.repository.files.onnx_releases import Release

from .graphs import graph

HERE = Path(__file__).parent
RECORD = HERE / "triton-2.51.yml"


@dataclass(frozen=True)
class Finding:
    """``at``: ``<path>:<line>``, or a path where there is no line, or nothing."""

    at: str
    code: str
    says: tuple[str, ...]

    def fits(self, finding: findings.Finding) -> bool:
        """Whether the validator's ``finding`` is this one."""
        place = finding.file if finding.line is None else f"{finding.file}:{finding.line}"
        words = f"{finding.path} {finding.sentence} {finding.hint}".casefold()
        return (place, finding.code) == (self.at, self.code) and all(word.casefold() in words for word in self.says)


@dataclass(frozen=True)
class Case:
    name: str
    about: str
    files: Mapping[str, Any]
    finding: Finding | None
    kills: bool
    refused_from: Release | None

    @property
    def models(self) -> set[str]:
        """The directories at the top, each a model to Triton."""
        return {path.split("/")[0] for path in self.files if "/" in path}

    def contents(self) -> dict[str, bytes]:
        """Path -> bytes."""
        return {path: _content(given) for path, given in self.files.items()}

    def write(self, root: Path) -> Path:
        """The repository as the product lays it out for a Triton without a GPU: with the empty
        directories that it restores, and GPU groups on the CPU."""
        contents = self.contents()
        for path, content in contents.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        for one in on_cpu(contents, lambda path: contents[path].decode(errors="surrogateescape")):
            (root / one.path).write_text(one.text, errors="surrogateescape")
        for directory in empty_directories(list(contents), lambda path: contents[path].decode(errors="replace")):
            (root / directory).mkdir()
        return root


def _content(given: Any) -> bytes:
    if isinstance(given, str):
        return given.encode()
    if "hex" in given:
        return bytes.fromhex(given["hex"])
    options = {key: value for key, value in given.items() if key in ("opset", "op", "outside")}
    return graph(given["onnx"], **options)[: given.get("keep")]


@cache
def corpus() -> tuple[Case, ...]:
    """All cases, by name."""
    return tuple(_read(path) for path in sorted((HERE / "corpus").glob("*.yml")))


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """Case -> ``verdict`` (``loads`` or ``refused``) and ``says``: what the real Triton answered,
    by record.py."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(RECORD.read_text()) if RECORD.exists() else {}
    return found


def _read(path: Path) -> Case:
    document = yaml.load(path.read_text(), yaml.CSafeLoader)
    finding = document.get("finding")
    if finding:
        finding = Finding(finding["at"], finding["code"], tuple(finding["says"]))
    first = document.get("refused_from")
    release = (int(first.split(".")[0]), int(first.split(".")[1])) if first else None
    return Case(path.stem, document["about"], document["files"], finding, document.get("kills", False), release)
