"""The content store: bytes named by their SHA-256, in a directory or an object store.

Decides what a content store must do, and which one a URL means: ``file:///directory`` or
``s3://bucket/prefix``. Must not know paths that users chose.

Content without references is deleted once it is a day old; storing existing content again resets
its age. Several control planes may share a store. Its methods do not exclude each other: deleting
content and referring to it happen inside a write transaction of the shared database
(``garbage_collection``, ``blob_store``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from amphitrite.controlplane.store.content.spool import Chunks, Upload
from amphitrite.controlplane.store.content.verified_files import VerifiedFiles
from amphitrite.schemas.errors import Error

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Entry(NamedTuple):
    """``name``: a digest, or that of a block or a temporary file. ``size``: bytes. ``stored_at``:
    when it was last stored, in seconds since the epoch."""

    name: str
    size: int
    stored_at: float


class Content(Protocol):
    """Thread-safe. ``digest``: SHA-256 as 64 hexadecimal digits, ValueError for anything else. A
    block is a part of a file, under a unique name that its caller chose.

    Every method raises Error RuntimeUnavailable if the store does not answer, is full or refuses.
    """

    #: What is known about files on this machine, in the store or laid out from it.
    verified: VerifiedFiles

    @property
    def place(self) -> str:
        """The directory or the URL, for messages."""
        ...

    def begin(self, max_bytes: int) -> Upload:
        """An upload to write a body to. The content exists, complete and new, once the upload is
        finished."""
        ...

    def size(self, digest: str) -> int | None:
        """Bytes; None if the content does not exist."""
        ...

    def intact(self, digest: str) -> bool:
        """Whether the content exists and is what its digest says. It may read all of it."""
        ...

    def read(self, digest: str, first: int, end: int, *, verified: bool = True) -> Chunks:
        """The bytes from ``first`` up to but not including ``end``, both within the content.

        It is already open when this returns, so deleting it does not affect the reader. Raises
        LookupError if it does not exist, and, unless the reader compares the digest
        (``verified=False``), Error DamagedContent if a directory has it and it is damaged. An
        object store checks what it keeps.
        """
        ...

    def forget_cached(self, digest: str) -> None:
        """Lets the next reader have what is on the disk, and not what the kernel remembers of
        it."""
        ...

    def lay_out(self, digest: str, target: Path) -> None:
        """Creates a read-only file with this content at ``target``, which must not exist.

        Raises LookupError if the content does not exist, Error DamagedContent if it is damaged.
        """
        ...

    def url(self, digest: str, seconds: int) -> str | None:
        """A URL from which anybody can read it for ``seconds``; None if only this control plane
        can."""
        ...

    def digests(self) -> Iterator[str]:
        """The digests of all content."""
        ...

    def entries(self) -> Iterator[Entry]:
        """All content with its size and age."""
        ...

    def unfinished(self) -> Iterator[Entry]:
        """Uploads that are not finished, and blocks, under their names."""
        ...

    def discard_older(self, digest: str, before: float) -> bool:
        """Deletes content that was last stored before ``before``. Returns whether it was
        deleted."""
        ...

    def read_block(self, name: str) -> Chunks:
        """Raises LookupError if it does not exist."""
        ...

    def drop_blocks(self, names: Iterable[str]) -> None:
        """Deletes these blocks; missing ones are ignored."""
        ...

    def drop_unfinished(self, before: float, blocks: Collection[str]) -> None:
        """Deletes uploads begun before ``before`` and not finished, and blocks of that age except
        ``blocks``."""
        ...


def open_content(url: str, scratch: Path, clock: Callable[[], float]) -> Content:
    """The content store of a URL.

    ``scratch``: a directory of this control plane alone, for uploads on their way to an object
    store; it must have space for the largest file. Raises Error BadArgument (not such a URL),
    Unsupported (the library for it is not installed) or RuntimeUnavailable (the store refuses
    access).
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
    """Raises ValueError unless it is a SHA-256 as 64 hexadecimal digits."""
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"not a SHA-256: {digest!r}")
    return digest


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def damaged(digest: str, what: str) -> Error:
    """The error for content that is not what its digest says. ``what``: the file, or the object."""
    hint = "upload the same files again (`ml model create`), which repairs it; `ml server check` finds all damage"
    return Error("DamagedContent", f"{what} is damaged: its SHA-256 is not {digest}", target=digest, hint=hint)


def _not_a_place(url: str) -> Error:
    # A password in such a URL must not appear in a log.
    shown = re.sub(r"//[^/]*@", "//***@", url.split("?")[0])
    hint = (
        "use file:///directory or s3://bucket/prefix; set an object store's endpoint and keys with AWS_ENDPOINT_URL, "
    )
    hint += "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return Error("BadArgument", f"not a URL of a model store: {shown}", target="models", hint=hint)
