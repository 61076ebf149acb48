"""A repository in memory, for rows of a table."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import BinaryIO

from amphitrite.schemas.repository import Server, validate
from amphitrite.schemas.repository.files.findings import Finding

from ...tiny_onnx import tiny

MODEL = tiny("x")
#: This machine, without a GPU.
LOCAL = Server(gpus=0)


class Memory:
    """``files``: path -> content; None for a directory without files."""

    def __init__(self, files: Mapping[str, bytes | str | None]) -> None:
        self._files = {p: c.encode() if isinstance(c, str) else c for p, c in files.items() if c is not None}
        self._directories = frozenset(path for path, content in files.items() if content is None)

    @property
    def sizes(self) -> Mapping[str, int]:
        return {path: len(content) for path, content in self._files.items()}

    @property
    def directories(self) -> frozenset[str]:
        return self._directories

    def open(self, path: str) -> BinaryIO:
        return io.BytesIO(self._files[path])


def judged(files: Mapping[str, bytes | str | None], server: Server = LOCAL) -> list[Finding]:
    return validate(Memory(files), server=server)


def configured(config: str, server: Server = LOCAL) -> list[Finding]:
    """Of the model ``m``, ``y = x`` (FP32, [N, 4]), with this config.pbtxt."""
    return judged({"m/1/model.onnx": MODEL, "m/config.pbtxt": config}, server)
