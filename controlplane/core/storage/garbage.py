"""Which stored things are garbage: what nobody needs and nobody may be about to need.

Decides by facts and the time, so two control planes that look at the same facts agree, and a
collection that was killed is simply repeated. Pure. Must not know how anything is deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

#: ``upload``: files that clients have sent; ``content``: files that no upload and no version names;
#: ``unfinished``: parts of files on their way; ``repository``: a directory made of a version's
#: files; ``instance``: the directory of an instance, with its logs; ``backends``: a directory of
#: Triton's backends; ``build``: a backend compiled for another runtime or compiler.
Kind = Literal["upload", "content", "unfinished", "repository", "instance", "backends", "build"]

#: An upload that is not registered after this many seconds is garbage. Clients take hours to send
#: large models, so nobody may choose less than the second.
AGE_S, AGE_MIN_S = 24 * 3600.0, 3600.0
#: What can be made again is garbage as soon as nobody needs it; its owner guards against a start at
#: the same moment.
_AGELESS: frozenset[Kind] = frozenset({"repository", "instance", "backends"})


@dataclass(frozen=True, slots=True)
class StoredItem:
    """Something that takes space.

    ``size``: bytes. ``changed_at``: when it was last written, in seconds since the epoch.
    ``needed``: something refers to it or runs from it.
    """

    kind: Kind
    name: str
    files: int
    size: int
    changed_at: float
    needed: bool


def is_garbage(item: StoredItem, now: float, age_s: float = AGE_S) -> bool:
    """Whether the item may be deleted. ``age_s``: how long what nobody needs is kept."""
    return not item.needed and (item.kind in _AGELESS or item.changed_at < now - age_s)


def upload_of(path: str) -> str:
    """The upload that a path belongs to: ``LocalUpload/<hash>``, or ``codes/<upload>``."""
    return "/".join(path.split("/")[:2])


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """``size``: bytes. ``modified_at``: seconds since the epoch."""

    path: str
    digest: str
    size: int
    modified_at: float


def uploads(files: Iterable[UploadedFile], registered: Iterable[str]) -> Mapping[StoredItem, tuple[UploadedFile, ...]]:
    """The uploads and their files. ``registered``: paths that a version has.

    Clients take the mark on one file (``upload_status``) to mean that the whole directory is there,
    so an upload is as young as its newest file, and goes as a whole.
    """
    of: dict[str, list[UploadedFile]] = defaultdict(list)
    for file in files:
        of[upload_of(file.path)].append(file)
    needed = {upload_of(path) for path in registered}
    return {
        StoredItem(
            "upload",
            name,
            len(some),
            sum(one.size for one in some),
            max(one.modified_at for one in some),
            name in needed,
        ): tuple(some)
        for name, some in of.items()
    }
