"""The manifest of a model version: which files it has, found out once and then frozen.

Decides which addresses of uploaded files are understood, what a relative path may be, and the digest that stands for
the content. Must not know containers or versions.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

from sqlalchemy import Connection, select

from amphitrite.controlplane.store.sql.tables import blobs
from amphitrite.schemas.errors import Error, Violation

DATASTORE = "workspaceblobstore"
#: Long form (azure-ai-ml sends it, ``resourcegroups`` in lower case) and short form of an address in a datastore.
_ADDRESS = re.compile(
    r"azureml://(?:subscriptions/[^/]+/resourcegroups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+/)?"
    r"datastores/(?P<datastore>[^/]+)/paths/(?P<path>.+)",
    re.IGNORECASE | re.DOTALL,
)
#: Bytes of one file name on Linux file systems.
_NAME_MAX = 255


@dataclass(frozen=True, slots=True, order=True)
class File:
    """``path`` is relative to the model; ``blob_path`` is where it was uploaded to."""

    path: str
    digest: str
    size: int
    blob_path: str


def blob_prefix(address: str) -> str:
    """The path below the container that a model's ``path`` stands for.

    Raises Error Unsupported (an address that is not an upload), UserError (another datastore).
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise Error(
            "Unsupported",
            f"a model cannot be registered from {address}",
            target="path",
            hint=f"upload local files, or use azureml://datastores/{DATASTORE}/paths/...",
        )
    if match["datastore"].lower() != DATASTORE:
        raise Error(
            "UserError", f"no datastore '{match['datastore']}'", target="path", hint=f"the only one is {DATASTORE}"
        )
    return match["path"].strip("/")


def read_manifest(connection: Connection, address: str, *, files_max: int) -> tuple[File, ...]:
    """The files at an address: :func:`read_files` there. Raises what :func:`blob_prefix` raises, too."""
    return read_files(connection, blob_prefix(address), files_max=files_max)


def read_files(connection: Connection, prefix: str, *, files_max: int) -> tuple[File, ...]:
    """The files at a path below the container, sorted by path: one file, or all below a directory.

    Raises Error UserError (none; names that cannot be files), LimitExceeded.
    """
    # Clients do not agree on whether the path in an address is percent-encoded.
    files = _below(connection, prefix, files_max) or _below(connection, unquote(prefix), files_max)
    if not files:
        raise Error("UserError", f"no file below {prefix}", target="path", hint="upload the files first")
    if len(files) > files_max:
        raise Error(
            "LimitExceeded",
            f"a version may have {files_max} files (files_per_model), there are more below {prefix}",
            target="path",
            hint="this is Azure ML's limit as well: pack small files together",
        )
    violations = _check_paths([file.path for file in files])
    if violations:
        raise Error(
            "UserError",
            "the version cannot be laid out as files: " + "; ".join(v.message for v in violations[:5]),
            target="path",
            violations=violations,
        )
    return tuple(files)


def manifest_digest(files: Sequence[File]) -> str:
    """SHA-256 over the sorted (path, digest) pairs: the same for the same files, wherever they were uploaded to."""
    content = json.dumps(sorted((file.path, file.digest) for file in files))
    return hashlib.sha256(content.encode()).hexdigest()


def _below(connection: Connection, prefix: str, files_max: int) -> list[File]:
    """At most one more than ``files_max``."""
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
            violations.append(Violation(("path",), f"{path!r} lies below a file"))
    return violations
