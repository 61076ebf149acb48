"""The files of a model version, as the control plane lists them.

Decides that a list is accepted only when its digest is the requested one, and that no path leads
out of the model's directory. Must not know how files are downloaded.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from amphitrite.dataplane.fetch.fetch_failure import FetchFailure

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class File:
    """``path``: relative, with ``/``. ``size``: bytes. ``url``: short-lived and a secret."""

    path: str
    digest: str
    size: int
    url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Manifest:
    """``in_use``: the digests of models that some deployment needs, this one among them."""

    digest: str
    files: tuple[File, ...]
    empty_directories: tuple[str, ...]
    in_use: frozenset[str]

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)


def read(body: bytes, digest: str, base: str) -> Manifest:
    """The manifest in ``body``. ``base``: the control plane's URL, which relative addresses start
    from. Raises FetchFailure."""
    try:
        value = json.loads(body)
        files = tuple(_file(entry, base) for entry in value["files"])
        directories = tuple(_inside(path) for path in value["empty_directories"])
        in_use = frozenset(str(other) for other in value.get("in_use", ()))
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise FetchFailure(f"the control plane's list of files cannot be read: {exc}") from exc
    actual = manifest_digest(files)
    if actual != digest:
        raise FetchFailure(f"the control plane lists the files of another model: {actual} instead of {digest}")
    return Manifest(digest, files, directories, in_use | {digest})


def manifest_digest(files: tuple[File, ...]) -> str:
    """SHA-256 of the sorted (path, digest) pairs, as the model store makes it."""
    content = json.dumps(sorted((file.path, file.digest) for file in files))
    return hashlib.sha256(content.encode()).hexdigest()


def _file(entry: Any, base: str) -> File:
    url = urljoin(f"{base}/", str(entry["url"]))
    size, digest = int(entry["size"]), str(entry["digest"])
    if urlsplit(url).scheme not in ("http", "https") or size < 0 or not _DIGEST.fullmatch(digest):
        raise ValueError(f"the entry of {entry['path']!r} is no file")
    return File(_inside(str(entry["path"])), digest, size, url)


def _inside(path: str) -> str:
    if any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path:
        raise ValueError(f"{path!r} is no path below a directory")
    return path
