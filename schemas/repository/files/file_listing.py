"""The files of a repository for the validator, and the server that would load it.

Decides the interface of a listing, how much of a file is read, and the properties of a server. Must
not know where files are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from amphitrite.schemas.repository.files.onnx_releases import Release

#: Maximum bytes of config.pbtxt or model.py. Triton's own limit is much higher.
TEXT_BYTES_MAX = 1024 * 1024
#: Backends of the Triton wheel, and our own (``dataplane/triton/backends``).
LOCAL_BACKENDS = frozenset({"python", "onnxruntime"})


class TooMuch(Exception):
    """A file is too expensive to read further."""


class Repository(Protocol):
    """Files by their path relative to the repository's root, with ``/`` as separator."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Path -> bytes, of every file."""
        ...

    @property
    def directories(self) -> frozenset[str]:
        """Directories without files, if the listing knows them. Others follow from ``sizes``."""
        ...

    def open(self, path: str) -> BinaryIO:
        """The content as a seekable stream. Raises OSError; reading may also raise TooMuch."""
        ...


@dataclass(frozen=True, slots=True)
class Server:
    """The Triton server that would load a repository.

    ``backends``: names of its backends; None if they are unknown (an image of the user's).
    ``onnxruntime_is_ours``: whether its ``onnxruntime`` backend is the one of
    ``dataplane/triton/backends``, which supports less than Triton's own. ``onnxruntime``: the
    release that this backend loads; None if it is unknown: then the newest one is assumed.
    ``gpus``: number of GPUs of an instance; None if it is unknown: then a model that needs one is
    only a warning. ``has_module``: whether Python can import a module; None if that is unknown.
    """

    version: tuple[int, int] = (2, 51)
    backends: frozenset[str] | None = LOCAL_BACKENDS
    onnxruntime_is_ours: bool = True
    onnxruntime: Release | None = None
    gpus: int | None = None
    has_module: Callable[[str], bool] | None = None

    @property
    def shown(self) -> str:
        return f"Triton {self.version[0]}.{self.version[1]}"


#: Any server: it may have more backends, and another backend for ONNX.
ANY_SERVER = Server(backends=None, onnxruntime_is_ours=False)


def read_text(files: Repository, path: str) -> str | None:
    """The text of a file; None if it is larger than TEXT_BYTES_MAX.

    Bytes that are not UTF-8 become surrogates. Raises OSError.
    """
    if files.sizes[path] > TEXT_BYTES_MAX:
        return None
    with files.open(path) as stream:
        return stream.read(TEXT_BYTES_MAX + 1).decode("utf-8", errors="surrogateescape")
