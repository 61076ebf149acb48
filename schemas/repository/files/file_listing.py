"""The files of a repository as the validator sees them, and the server that is to load it.

Decides what a listing must offer, how much of a file is read at most, and what a server is described by. Must not know
where files lie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from amphitrite.schemas.repository.files.onnx_releases import Release

#: Bytes of a config.pbtxt, a model.py or a file of labels that are read at most; Triton's own limit is far above.
TEXT_BYTES_MAX = 1024 * 1024
#: Backends of the wheel's Triton and of ours (``dataplane/triton/backends``).
LOCAL_BACKENDS = frozenset({"python", "onnxruntime"})


class TooMuch(Exception):
    """To read on in a file costs more than its judgement is worth."""


class Repository(Protocol):
    """Files by their path relative to the repository's root, with ``/`` between the parts."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Path -> bytes, of every file."""
        ...

    @property
    def directories(self) -> frozenset[str]:
        """Directories that hold no file, where the listing can tell; those of files follow from ``sizes``."""
        ...

    def open(self, path: str) -> BinaryIO:
        """The content, readable and seekable. Raises OSError; reading may raise TooMuch as well."""
        ...


@dataclass(frozen=True, slots=True)
class Server:
    """A Triton.

    ``backends``: what it can load, None when that is not known (an image of the user's). ``onnxruntime_is_ours``: its
    ``onnxruntime`` backend is the one of ``dataplane/triton/backends``, which honours less than Triton's own.
    ``onnxruntime``: the release that this backend loads; None when that is not known: then the newest one counts.
    ``gpus``: how many GPUs an instance has, None when that is not known: then what needs one is only warned of."""

    version: tuple[int, int] = (2, 51)
    backends: frozenset[str] | None = LOCAL_BACKENDS
    onnxruntime_is_ours: bool = True
    onnxruntime: Release | None = None
    gpus: int | None = None
    has_module: Callable[[str], bool] | None = None

    @property
    def shown(self) -> str:
        return f"Triton {self.version[0]}.{self.version[1]}"


#: For what is to hold wherever the model is served: other servers have more backends, and another one for ONNX.
ANY_SERVER = Server(backends=None, onnxruntime_is_ours=False)


def read_text(files: Repository, path: str) -> str | None:
    """The text of a file, None when it is larger than TEXT_BYTES_MAX. Bytes that are not UTF-8 become surrogates.

    Raises OSError.
    """
    if files.sizes[path] > TEXT_BYTES_MAX:
        return None
    with files.open(path) as stream:
        return stream.read(TEXT_BYTES_MAX + 1).decode("utf-8", errors="surrogateescape")
