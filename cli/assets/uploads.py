"""Uploads model files to the workspace's store.

Decides the names of blobs, whether a file is sent whole or in blocks, that the store must have what
was read, and that existing content is not sent again. Must not know model versions. The metadata of
the first file mark an upload as complete. Outside contract: the part of Azure Blob Storage's REST
API that Azure ML's clients use ("Put Blob", "Put Block", "Put Block List", "Set Blob Metadata").
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from amphitrite.cli.assets import model_files
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    import httpx

    from amphitrite.cli.assets.model_files import LocalFile
    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.terminal.progress import Progress

DATASTORE = "workspaceblobstore"
#: Files up to this size are sent in one request, which is fastest: the store reads blocks a second
#: time to join them. Larger files are sent in blocks, because the client sees an error only at the
#: end of a request.
WHOLE_BYTES = 2 * 1024**3
BLOCK_BYTES = 64 * 1024**2
_READING = "reading files"
_VERSION = {"x-ms-version": "2024-11-04"}
_BLOB = {**_VERSION, "x-ms-blob-type": "BlockBlob", "Content-Type": "application/octet-stream"}


def upload(client: Client, path: Path, progress: Progress, *, name: str, version: str) -> str:
    """Upload the model at ``path``, unless the store has it.

    ``name`` and ``version`` become metadata.

    Returns the URI of the files for a model version. Raises Error LocalFileError, and the errors of
    the store.
    """
    model = model_files.read(path)
    contents = model_files.contents(model, partial(progress.transfer, _READING))
    folder = _folder(contents.digest)
    # A directory is stored under its own name, so that a download can restore the name.
    prefix = f"{folder}/{model.name}" if model.is_directory else folder
    uri = _uri(client, folder, model.name)
    store = _Store(client, container(client), prefix)
    mark = model.files[0].relative
    if not store.is_complete(mark):
        sent = 0
        for file in model.files:

            def report(size: int, before: int = sent) -> None:
                progress.transfer("uploading", before + size, model.size)

            report(0)
            store.put(file, contents.sha256[file.relative], report)
            sent += file.size
        store.complete(mark, name, version)
    return uri


def upload_uri(client: Client, path: Path, progress: Progress) -> str:
    """The URI that ``upload`` would return.

    Reads the files, sends nothing. Raises Error LocalFileError.
    """
    model = model_files.read(path)
    contents = model_files.contents(model, partial(progress.transfer, _READING))
    return _uri(client, _folder(contents.digest), model.name)


def _folder(digest: str) -> str:
    return f"LocalUpload/{digest}"


def _uri(client: Client, folder: str, name: str) -> str:
    scope = client.scope
    return (
        f"azureml://subscriptions/{scope.subscription}/resourcegroups/{scope.resource_group}"
        f"/workspaces/{scope.workspace}/datastores/{DATASTORE}/paths/{folder}/{name}"
    )


def container(client: Client) -> str:
    """The path of the workspace's container.

    Like Azure's clients, it appends ``.blob.<suffix>`` to the account.
    """
    datastore = client.get(f"{client.workspace}/datastores/{DATASTORE}")["properties"]
    account: str = datastore["accountName"]
    _, _, path = account.partition("/")
    return f"/{path}.blob.core.windows.net/{datastore['containerName']}"


def etag(sha256: str) -> str:
    """The ETag of a blob, which depends on its content alone."""
    return f'"0x{sha256[:16].upper()}"'


class _Store:
    """Blobs below one prefix of a container."""

    def __init__(self, client: Client, container: str, prefix: str) -> None:
        self._client = client
        self._base = f"{container}/{quote(prefix)}" if prefix else container

    def is_complete(self, mark: str) -> bool:
        """Whether an earlier upload of this content was completed."""
        answer = self._client.exchange("HEAD", self._url(mark), headers=_VERSION)
        return answer.is_success and answer.headers.get("x-ms-meta-upload_status") == "completed"

    def complete(self, mark: str, name: str, version: str) -> None:
        """Mark the upload as complete."""
        facts = {"upload_status": "completed", "name": name, "version": version}
        headers = {**_VERSION, **{f"x-ms-meta-{key}": value for key, value in facts.items()}}
        self._client.send("PUT", self._url(mark), params={"comp": "metadata"}, headers=headers)

    def put(self, file: LocalFile, sha256: str, report: Callable[[int], None]) -> None:
        """Send a file, in blocks if it is large.

        ``report`` is called with the number of bytes sent so far.

        Raises Error LocalFileError if the content in the store is not what was read before.
        """
        url = self._url(file.relative)
        if file.size <= WHOLE_BYTES:
            answer = self._send(url, {}, _BLOB, file, 0, file.size, report)
        else:
            ids: list[str] = []
            for start in range(0, file.size, BLOCK_BYTES):
                ids.append(base64.b64encode(f"{len(ids):06d}".encode()).decode())
                params = {"comp": "block", "blockid": ids[-1]}
                self._send(url, params, _VERSION, file, start, min(BLOCK_BYTES, file.size - start), report)
            latest = "".join(f"<Latest>{block_id}</Latest>" for block_id in ids)
            body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{latest}</BlockList>'.encode()
            answer = self._client.send("PUT", url, params={"comp": "blocklist"}, content=body, headers=_VERSION)
        if answer.headers.get("etag") != etag(sha256):
            message = f"{file.path} changed during the upload, or arrived damaged"
            raise Error(
                "LocalFileError", message, target=str(file.path), hint="try again when no program writes to the file"
            )

    def _send(
        self,
        url: str,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        file: LocalFile,
        start: int,
        length: int,
        report: Callable[[int], None],
    ) -> httpx.Response:
        """Send ``length`` bytes of the file from ``start``, in one request."""

        def content() -> Iterator[bytes]:
            sent = start
            for piece in model_files.blocks(file.path, start, length):
                yield piece
                sent += len(piece)
                report(sent)
            if sent < start + length:
                raise Error("LocalFileError", f"{file.path} became shorter during the upload", target=str(file.path))

        headers = {**headers, "Content-Length": str(length)}
        return self._client.send("PUT", url, params=params, content=content(), headers=headers)

    def _url(self, relative: str) -> str:
        return f"{self._base}/{quote(relative)}"
