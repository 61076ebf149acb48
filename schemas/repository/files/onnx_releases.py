"""What each release of ONNX Runtime reads.

Decides the newest format and operator sets of a release, and which release this environment has. Must not know files,
operators or rules."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

#: Major and minor number.
Release = tuple[int, int]

#: Domains whose operator set has the same newest version in every release below.
_DOMAINS: Mapping[str, int] = MappingProxyType(
    {
        "ai.onnx.ml": 5,
        "ai.onnx.training": 1,
        "ai.onnx.preview.training": 1,
        "com.microsoft": 1,
        "com.microsoft.nchwc": 1,
    }
)
#: First release -> (newest IR version, newest operator set of ai.onnx), measured with each release from 1.20 to NEWEST.
#: A test compares the row of the installed release with the release itself.
_FORMATS: Mapping[Release, tuple[int, int]] = MappingProxyType(
    {(1, 20): (10, 21), (1, 21): (10, 22), (1, 23): (11, 23), (1, 24): (13, 25), (1, 25): (13, 26), (1, 32): (14, 28)}
)
#: What this table knows; the range in pyproject.toml begins and ends with them.
OLDEST: Release = min(_FORMATS)
NEWEST: Release = (1, 32)


@dataclass(frozen=True, slots=True)
class Limits:
    """``ir_version``: of the file format. ``opsets``: domain -> version; ``ai.onnx`` is the empty name."""

    release: Release
    ir_version: int
    opsets: Mapping[str, int]

    @property
    def shown(self) -> str:
        return f"ONNX Runtime {self.release[0]}.{self.release[1]}"


def limits(release: Release | None = None) -> Limits:
    """Of a release; of the newest known one where it is None. Outside the table its nearest end counts."""
    release = max(OLDEST, min(release or NEWEST, NEWEST))
    ir_version, opset = _FORMATS[max(first for first in _FORMATS if first <= release)]
    return Limits(release, ir_version, {"": opset, **_DOMAINS})


def installed() -> Release | None:
    """The release in this environment, None where there is none. Nothing is imported."""
    for name in ("onnxruntime", "onnxruntime-gpu"):
        with suppress(importlib.metadata.PackageNotFoundError, ValueError):
            major, minor = importlib.metadata.version(name).split(".")[:2]
            return int(major), int(minor)
    return None
