"""The file formats that each release of ONNX Runtime supports.

Decides the newest format and operator sets of a release, and which release is installed. Must not
know files, operators or rules.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

#: Major and minor version.
Release = tuple[int, int]

#: Operator sets whose newest version is the same in every release below.
_DOMAINS: Mapping[str, int] = MappingProxyType(
    {
        "ai.onnx.ml": 5,
        "ai.onnx.training": 1,
        "ai.onnx.preview.training": 1,
        "com.microsoft": 1,
        "com.microsoft.nchwc": 1,
    }
)
#: First release -> (newest IR version, newest operator set of ai.onnx), measured with each release
#: from 1.20 to NEWEST. A test compares the row of the installed release with the release itself.
_FORMATS: Mapping[Release, tuple[int, int]] = MappingProxyType(
    {(1, 20): (10, 21), (1, 21): (10, 22), (1, 23): (11, 23), (1, 24): (13, 25), (1, 25): (13, 26), (1, 32): (14, 28)}
)
#: The range of the table, which is also the range in pyproject.toml.
OLDEST: Release = min(_FORMATS)
NEWEST: Release = (1, 32)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a release.

    ``ir_version``: the newest version of the file format. ``opsets``: domain -> newest version; the
    domain ``ai.onnx`` is the empty text.
    """

    release: Release
    ir_version: int
    opsets: Mapping[str, int]

    @property
    def shown(self) -> str:
        return f"ONNX Runtime {self.release[0]}.{self.release[1]}"


def limits(release: Release | None = None) -> Limits:
    """The limits of a release; for None, of the newest one.

    A release outside the table has the limits of the nearest one in it.
    """
    release = max(OLDEST, min(release or NEWEST, NEWEST))
    ir_version, opset = _FORMATS[max(first for first in _FORMATS if first <= release)]
    return Limits(release, ir_version, {"": opset, **_DOMAINS})


def installed() -> Release | None:
    """The release in this environment; None if there is none. It is not imported."""
    for name in ("onnxruntime", "onnxruntime-gpu"):
        with suppress(importlib.metadata.PackageNotFoundError, ValueError):
            major, minor = importlib.metadata.version(name).split(".")[:2]
            return int(major), int(minor)
    return None
