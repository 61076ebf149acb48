"""Model files to the workspace's store, over the subset of Azure Blob Storage that Azure ML's clients use.

Decides names of blobs, how a file travels (whole, or in blocks), and that content which is there already is not sent
again. Must not know model versions. The first file carries the mark that the whole upload is complete.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from amphitrite.cli import model_files

if TYPE_CHECKING:
    from amphitrite.cli.client import Client
    from amphitrite.cli.model_files import LocalFile
    from amphitrite.cli.progress import Progress

DATASTORE = "workspaceblobstore"
#: Files up to this size travel in one request, larger ones in blocks of BLOCK_BYTES.
WHOLE_BYTES = 64 * 1024 * 1024
BLOCK_BYTES = 16 * 1024 * 1024
_VERSION = {"x-ms-version": "2024-11-04"}
_BLOB = {**_VERSION, "x-ms-blob-type": "BlockBlob", "Content-Type": "application/octet-stream"}


def upload(client: Client, path: Path, progress: Progress, *, name: str, version: str) -> str:
    """Bring the model at ``path`` to the store, unless it is there. ``name`` and ``version`` are noted with it.

    Returns the URI by which a model version names its files. Raises Error LocalFileError and what the store answers.
    """
    model = model_files.read(path)
    progress.phase("reading files")
    contents = model_files.contents(model)
    folder = _folder(contents.digest)
    # A directory is sent under its own name, so that it has it again where it is downloaded.
    prefix = f"{folder}/{model.name}" if model.is_directory else folder
    uri = _uri(client, folder, model.name)
    store = _Store(client, container(client), prefix)
    mark = model.files[0].relative
    if not store.is_complete(mark):
        sent = 0
        for file in model.files:
            for size in store.put(file, contents.md5[file.relative]):
                sent += size
                progress.phase(f"uploading {_megabytes(sent)} of {_megabytes(model.size)} MB")
        store.complete(mark, name, version)
    return uri


def address(client: Client, path: Path) -> str:
    """The URI that ``upload`` would return; reads the files, sends nothing. Raises Error LocalFileError."""
    model = model_files.read(path)
    return _uri(client, _folder(model_files.contents(model).digest), model.name)


def _folder(digest: str) -> str:
    return f"LocalUpload/{digest}"


def _uri(client: Client, folder: str, name: str) -> str:
    scope = client.scope
    return (
        f"azureml://subscriptions/{scope.subscription}/resourcegroups/{scope.resource_group}"
        f"/workspaces/{scope.workspace}/datastores/{DATASTORE}/paths/{folder}/{name}"
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f}"


def container(client: Client) -> str:
    """The path of the workspace's container: as Azure's clients do, ``.blob.<suffix>`` goes behind the account."""
    datastore = client.get(f"{client.workspace}/datastores/{DATASTORE}")["properties"]
    account: str = datastore["accountName"]
    _, _, path = account.partition("/")
    return f"/{path}.blob.core.windows.net/{datastore['containerName']}"


class _Store:
    """Blobs below one prefix of a container."""

    def __init__(self, client: Client, container: str, prefix: str) -> None:
        self._client = client
        self._base = f"{container}/{quote(prefix)}" if prefix else container

    def is_complete(self, mark: str) -> bool:
        """Whether an earlier upload of this content has reached its end."""
        answer = self._client.exchange("HEAD", self._url(mark), headers=_VERSION)
        return answer.is_success and answer.headers.get("x-ms-meta-upload_status") == "completed"

    def complete(self, mark: str, name: str, version: str) -> None:
        """Say that every file is there."""
        facts = {"upload_status": "completed", "name": name, "version": version}
        headers = {**_VERSION, **{f"x-ms-meta-{key}": value for key, value in facts.items()}}
        self._client.send("PUT", self._url(mark), params={"comp": "metadata"}, headers=headers)

    def put(self, file: LocalFile, md5: bytes) -> Iterator[int]:
        """Send a file, in blocks when it is large; yields the sizes of what has been sent."""
        url = self._url(file.relative)
        if file.size <= WHOLE_BYTES:
            headers = {**_BLOB, "Content-MD5": _base64(md5), "Content-Length": str(file.size)}
            self._client.send("PUT", url, content=model_files.blocks(file.path), headers=headers)
            yield file.size
            return
        ids = []
        for number, start in enumerate(range(0, file.size, BLOCK_BYTES)):
            block = b"".join(model_files.blocks(file.path, start, BLOCK_BYTES))
            ids.append(_base64(f"{number:06d}".encode()))
            headers = {**_VERSION, "Content-MD5": _base64(hashlib.md5(block, usedforsecurity=False).digest())}
            params = {"comp": "block", "blockid": ids[-1]}
            self._client.send("PUT", url, params=params, content=block, headers=headers)
            yield len(block)
        latest = "".join(f"<Latest>{block_id}</Latest>" for block_id in ids)
        body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{latest}</BlockList>'
        self._client.send("PUT", url, params={"comp": "blocklist"}, content=body.encode(), headers=_VERSION)

    def _url(self, relative: str) -> str:
        return f"{self._base}/{quote(relative)}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
