"""Downloads model files from the workspace's store.

Decides the path of each file, and refuses names that would leave the target directory. Must not
know model versions. A file is downloaded in ranges. It gets its name when it is complete and has
the digest that it was uploaded with. Outside contract: Azure Blob Storage's REST API ("List Blobs",
"Get Blob").
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from amphitrite.cli.assets import uploads
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.terminal.progress import Progress

_VERSION = {"x-ms-version": "2024-11-04"}
_PIECE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Blob:
    """``path``: within the container. ``size``: in bytes."""

    path: str
    size: int
    etag: str


def download(client: Client, uri: str, directory: Path, progress: Progress) -> None:
    """Write the files at ``uri`` to ``directory``, under the last part of ``uri``.

    Raises Error Unsupported for a URI outside the workspace's store, ResourceNotFound,
    LocalFileError, and the errors of the store.
    """
    marker = f"/datastores/{uploads.DATASTORE}/paths/"
    base, separator, path = uri.partition(marker)
    if not separator or not base.startswith("azureml:"):
        raise Error(
            "Unsupported", f"cannot download {uri}: the files are not in the store of this workspace", target=uri
        )
    container = uploads.container(client)
    parent = path.rpartition("/")[0]
    blobs = [blob for blob in _list(client, container, path) if blob.path == path or blob.path.startswith(f"{path}/")]
    if not blobs:
        raise Error("ResourceNotFound", f"no files at {uri}", target=uri)
    total, done = sum(blob.size for blob in blobs), 0
    for blob in blobs:
        target = directory / _inside(blob.path[len(parent) :].lstrip("/"))
        for size in _fetch(client, container, blob, target):
            done += size
            progress.transfer("downloading", done, total)


def _inside(relative: str) -> Path:
    """``relative`` as a path below its base. Raises Error LocalFileError if it leaves it."""
    path = PurePosixPath(relative)
    if path.is_absolute() or not path.parts or ".." in path.parts or "\\" in relative or "\0" in relative:
        raise Error("LocalFileError", f"the store has a file {relative!r}, which is outside the target directory")
    return Path(*path.parts)


def _list(client: Client, container: str, prefix: str) -> Iterator[Blob]:
    from xml.etree import ElementTree as xml

    marker = ""
    while True:
        query = {"restype": "container", "comp": "list", "prefix": prefix, **({"marker": marker} if marker else {})}
        root = xml.fromstring(client.send("GET", container, params=query, headers=_VERSION).content)
        for blob in root.iterfind("Blobs/Blob"):
            properties = {child.tag: child.text or "" for child in blob.iterfind("Properties/*")}
            yield Blob(blob.findtext("Name") or "", int(properties["Content-Length"]), properties["Etag"])
        marker = root.findtext("NextMarker") or ""
        if not marker:
            return


def _fetch(client: Client, container: str, blob: Blob, target: Path) -> Iterator[int]:
    """Write ``target``; yields the bytes of each range. Raises LocalFileError or DamagedContent."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("wb") as file:
                sha256 = hashlib.sha256()
                for start in range(0, blob.size, _PIECE_BYTES):
                    last = min(start + _PIECE_BYTES, blob.size) - 1
                    headers = {**_VERSION, "x-ms-range": f"bytes={start}-{last}", "If-Match": blob.etag}
                    answer = client.send("GET", f"{container}/{quote(blob.path)}", headers=headers)
                    file.write(answer.content)
                    sha256.update(answer.content)
                    yield len(answer.content)
            if uploads.etag(sha256.hexdigest()) != blob.etag:
                raise Error(
                    "DamagedContent",
                    f"{blob.path} is damaged in the store, or arrived damaged",
                    target=blob.path,
                    hint="try again; if it fails again, upload the same files again (`ml model create`)",
                )
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as exc:
        raise Error("LocalFileError", f"cannot write {target}: {exc.strerror}", target=str(target)) from exc
