"""Where the bytes of models are kept, named by what is in them.

Decides what a place for content must do, and which place a URL stands for: ``file:///directory`` or
``s3://bucket/prefix``. Must not know paths that users chose.

What is not referred to is dropped once it is a day old, and taking in content that is there already makes it young
again. Several control planes may share a place. None of its verbs excludes another: whoever drops content and whoever
refers to it do so inside a write transaction of the database that they share (``garbage``, ``blobs``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from amphitrite.controlplane.store.content.spool import Chunks, Upload
from amphitrite.schemas.errors import Error

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Content(Protocol):
    """Thread-safe. ``digest``: SHA-256 in 64 hexadecimal digits; ValueError for anything else. A block is a part of a
    file, under a name that its caller made up and gives to no other.

    Every verb raises Error RuntimeUnavailable when the place does not answer, is full or refuses.
    """

    @property
    def place(self) -> str:
        """For messages: the directory or the URL."""
        ...

    def begin(self, max_bytes: int) -> Upload:
        """Somewhere to write a body to. Finished, it is there as a whole, and young; otherwise it is not there."""
        ...

    def size(self, digest: str) -> int | None:
        """Bytes; None when it is not there."""
        ...

    def read(self, digest: str, first: int, end: int) -> Chunks:
        """Bytes ``first`` up to but not including ``end``, both within the content. It is open when this returns, so
        dropping it does not disturb the reader. Raises LookupError when it is not there."""
        ...

    def lay_out(self, digest: str, target: Path) -> None:
        """A read-only file of this content at ``target``, which does not exist. Raises LookupError when it is not
        there, Error InternalServerError when it is not what its name says."""
        ...

    def url(self, digest: str, seconds: int) -> str | None:
        """An address under which anybody can read it for that long; None where only this control plane can."""
        ...

    def digests(self) -> Iterator[str]:
        """Of all content there is."""
        ...

    def discard_older(self, digest: str, before: float) -> bool:
        """Drop content that was last taken in before that time; whether it was there and is gone."""
        ...

    def read_block(self, name: str) -> Chunks:
        """Raises LookupError when it is not there."""
        ...

    def drop_blocks(self, names: Iterable[str]) -> None:
        """Those that are not there are no fault."""
        ...

    def drop_leftovers(self, before: float, blocks: Collection[str]) -> None:
        """What was begun before that time and never finished, and blocks of that age other than ``blocks``."""
        ...


def open_content(url: str, scratch: Path, clock: Callable[[], float]) -> Content:
    """The place for this URL. ``scratch``: a directory of this control plane alone, in which bodies gather on their way
    to an object store; it must hold the largest file.

    Raises Error BadArgument (not such a URL), Unsupported (the library for it is not installed), RuntimeUnavailable
    (it refuses us).
    """
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise _not_a_place(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.startswith("/"):
        from amphitrite.controlplane.store.content.directory_content import ContentDirectory

        return ContentDirectory(Path(unquote(parts.path)), clock)
    if parts.scheme == "s3" and parts.netloc and "@" not in parts.netloc:
        from amphitrite.controlplane.store.content.s3_content import open_bucket

        return open_bucket(parts.netloc, unquote(parts.path).strip("/"), scratch)
    raise _not_a_place(url)


def require_digest(digest: str) -> str:
    """Raises ValueError for what is no SHA-256 in 64 hexadecimal digits."""
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"not a SHA-256: {digest!r}")
    return digest


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def _not_a_place(url: str) -> Error:
    # Whoever writes a password into such a URL should not find it in a log.
    shown = re.sub(r"//[^/]*@", "//***@", url.split("?")[0])
    hint = (
        "use file:///directory or s3://bucket/prefix; an object store's address and keys are set by AWS_ENDPOINT_URL, "
    )
    hint += "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return Error("BadArgument", f"not a place for models: {shown}", target="models", hint=hint)
