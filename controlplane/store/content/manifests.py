"""The manifest of a model version: its files, read once and then frozen.

Decides which URLs of uploaded files are valid, what a relative path may be, and the digest of the
content. Must not know containers or versions.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from urllib.parse import unquote

from sqlalchemy import Connection, select

from amphitrite.controlplane.store.sql.tables import blobs
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.repository.models.layout import is_single_model

DATASTORE = "workspaceblobstore"
#: The long and short form of a datastore URL. azure-ai-ml sends the long one, with
#: ``resourcegroups`` in lower case.
_ADDRESS = re.compile(
    r"azureml://(?:subscriptions/[^/]+/resourcegroups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+/)?"
    r"datastores/(?P<datastore>[^/]+)/paths/(?P<path>.+)",
    re.IGNORECASE | re.DOTALL,
)
#: The maximum bytes of a file name on Linux file systems.
_NAME_MAX = 255


@dataclass(frozen=True, slots=True, order=True)
class File:
    """``path``: relative to the model. ``blob_path``: where it was uploaded."""

    path: str
    digest: str
    size: int
    blob_path: str


def blob_prefix(address: str) -> str:
    """The path below the container for a model's ``path``.

    Raises Error Unsupported (a URL that is not an upload) or UserError (another datastore).
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise Error(
            "Unsupported",
            f"models cannot be registered from {address}",
            target="path",
            hint=f"upload local files, or use azureml://datastores/{DATASTORE}/paths/...",
        )
    if match["datastore"].lower() != DATASTORE:
        raise Error(
            "UserError", f"datastore '{match['datastore']}' does not exist", target="path", hint=f"use {DATASTORE}"
        )
    return match["path"].strip("/")


def read_manifest(connection: Connection, address: str, *, files_max: int) -> tuple[File, ...]:
    """The files at a URL. Raises what :func:`read_files` and :func:`blob_prefix` raise."""
    return read_files(connection, blob_prefix(address), files_max=files_max)


def read_repository(connection: Connection, address: str, *, files_max: int) -> tuple[File, ...]:
    """The files at a URL as a model repository. Raises as :func:`read_manifest`.

    As with Azure ML, the URL may be that of the directory of one model. Then the directory above it
    is the repository, and the name of the directory is that of the model.
    """
    files = read_manifest(connection, address, files_max=files_max)
    directory = _root(files[0])
    if not directory.name or not is_single_model([file.path for file in files]):
        return files
    return tuple(replace(file, path=f"{directory.name}/{file.path}") for file in files)


def uploaded_folder(file: File, address: str) -> str:
    """The name of the directory at ``address``, which holds the paths of a manifest.

    ``file``: any of them. Empty if the paths begin with that name themselves: those of a single
    file, or of the directory of one model.
    """
    root = _root(file)
    return root.name if str(root) in (prefix := blob_prefix(address), unquote(prefix)) else ""


def _root(file: File) -> PurePosixPath:
    """The uploaded directory to which the file's path is relative."""
    return PurePosixPath(file.blob_path.removesuffix(file.path))


def read_files(connection: Connection, prefix: str, *, files_max: int) -> tuple[File, ...]:
    """The files at a path below the container, sorted by path: one file, or all files of a
    directory.

    Raises Error UserError (no files, or names that cannot be files) or LimitExceeded.
    """
    # Clients differ in whether they percent-encode the path in a URL.
    files = _below(connection, prefix, files_max) or _below(connection, unquote(prefix), files_max)
    if not files:
        raise Error("UserError", f"there are no files below {prefix}", target="path", hint="upload the files first")
    if len(files) > files_max:
        raise Error(
            "LimitExceeded",
            f"there are more than {files_max} files below {prefix} (files_per_model)",
            target="path",
            hint="combine small files; Azure ML has the same limit",
        )
    violations = _check_paths([file.path for file in files])
    if violations:
        raise Error(
            "UserError",
            "the version cannot be stored as files: " + "; ".join(v.message for v in violations[:5]),
            target="path",
            violations=violations,
        )
    return tuple(files)


def manifest_digest(files: Sequence[File]) -> str:
    """SHA-256 of the sorted (path, digest) pairs: equal for equal files, wherever they were
    uploaded."""
    content = json.dumps(sorted((file.path, file.digest) for file in files))
    return hashlib.sha256(content.encode()).hexdigest()


def _below(connection: Connection, prefix: str, files_max: int) -> list[File]:
    """At most ``files_max`` + 1 files."""
    columns = (blobs.c.path, blobs.c.digest, blobs.c.size)
    one = connection.execute(select(*columns).where(blobs.c.path == prefix)).first()
    if one is not None:
        return [File(PurePosixPath(prefix).name, one.digest, one.size, prefix)]
    start, end = f"{prefix}/", f"{prefix}0"  # "0" is the character after "/".
    query = select(*columns).where(blobs.c.path >= start, blobs.c.path < end).order_by(blobs.c.path)
    return [
        File(row.path[len(start) :], row.digest, row.size, row.path)
        for row in connection.execute(query.limit(files_max + 1))
    ]


def _check_paths(paths: Sequence[str]) -> list[Violation]:
    violations = []
    names = set(paths)
    for path in paths:
        parts = path.split("/")
        if any(part in ("", ".", "..") for part in parts):
            violations.append(Violation(("path",), f"{path!r} has an empty part, '.' or '..'"))
        elif any(len(part.encode()) > _NAME_MAX for part in parts):
            violations.append(Violation(("path",), f"{path!r} has a part longer than {_NAME_MAX} bytes"))
        elif any("/".join(parts[:depth]) in names for depth in range(1, len(parts))):
            violations.append(Violation(("path",), f"{path!r} is below another file"))
    return violations
