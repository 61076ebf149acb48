"""Backup of a control plane to one file, and restore from it.

Decides what belongs in a backup: the database's rows in one snapshot, the models' content, and the
credentials and certificates of the home. Content in an object store stays there, as do credentials
and certificates outside the home, and the manifest says so. Must not know the format of rows or
archives.

A control plane may run during its backup: content never changes, and content that a row refers to
is not deleted. A restore needs an empty database and writes the rows last, so it can be repeated
until then.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from amphitrite.controlplane.settings.settings import Settings
from amphitrite.controlplane.settings.version import VERSION
from amphitrite.controlplane.store.checks import database_check
from amphitrite.controlplane.store.content.content_store import Content, damaged, open_content
from amphitrite.controlplane.store.sql.tables import REVISION
from amphitrite.controlplane.store.state import row_transfer
from amphitrite.controlplane.transfer import archive, exclusive_access
from amphitrite.dataplane.machine.atomic_files import write_atomically
from amphitrite.schemas.errors import Error

FORMAT = 1
#: Blocks of unfinished uploads, which clients start again.
EXCLUDED_TABLES = ("blocks",)


def backup(settings: Settings, file: Path) -> dict[str, Any]:
    """Writes ``file`` with mode 0600. Returns a summary of its content.

    Raises Error LocalFileError, RuntimeUnavailable, BadArgument, or DamagedContent: a backup of
    what is damaged would replace older, good ones.
    """
    database = row_transfer.open_existing(settings.database_url)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "revision": REVISION,
        "created_at": datetime.fromtimestamp(time.time(), timezone.utc).isoformat(timespec="seconds"),
        "database": database.url.get_backend_name(),
        "left_out": [],
        "rows": {},
    }
    try:
        with archive.create(file, lambda: manifest) as writer:
            database_check.require_sound(database)
            with database.read() as connection:
                for table in row_transfer.TABLES:
                    if table.name not in EXCLUDED_TABLES:
                        manifest["rows"][table.name] = _add_rows(
                            writer, table.name, row_transfer.rows(connection, table)
                        )
                digests = row_transfer.digests(connection)
            manifest["content"] = _add_content(writer, settings, digests, manifest["left_out"])
            for directory in (settings.home.credentials, settings.home.certificates):
                _add_files(writer, directory)
            _note_elsewhere(settings, manifest["left_out"])
    finally:
        database.close()
    return _summary(manifest, file)


def restore(settings: Settings, file: Path) -> dict[str, Any]:
    """Restores ``file`` into an empty database and home. Returns a summary of its content.

    Raises Error LocalFileError (it is damaged), Conflict (the target is not empty, or a control
    plane runs) or Unsupported (a newer version wrote it).
    """
    with archive.open_archive(file) as reader:
        manifest = reader.manifest
        _require_supported(manifest, file)
        _require_intact(reader, file)
        settings.home.create()
        files = _files(reader, settings)
        database = row_transfer.open_empty(settings.database_url)
        try:
            with exclusive_access.exclusive(settings.home, database):
                _restore_content(reader, settings)
                for path, data in files:
                    write_atomically(path, data, mode=0o600)
                with database.write() as connection:
                    row_transfer.require_empty(database, connection)
                    for table in row_transfer.TABLES:
                        name = f"database/{table.name}.jsonl"
                        if name in manifest["entries"]:
                            rows = (json.loads(line) for line in reader.lines(name))
                            row_transfer.insert_rows(connection, table, rows)
        finally:
            database.close()
    return _summary(manifest, file)


def _add_rows(writer: archive.Writer, table: str, rows: Iterator[row_transfer.Row]) -> int:
    count = 0
    with tempfile.TemporaryFile() as spool:
        for row in rows:
            spool.write(json.dumps(dict(row)).encode() + b"\n")
            count += 1
        size = spool.tell()
        spool.seek(0)
        writer.add(f"database/{table}.jsonl", size, iter(lambda: spool.read(archive.CHUNK), b""))
    return count


def _add_content(writer: archive.Writer, settings: Settings, digests: list[str], left_out: list[str]) -> str:
    """Where the content is: ``included``, or the URL where it stays."""
    if not settings.models_url.startswith("file:"):
        left_out.append(f"the content of models stays in {settings.models_url}")
        return settings.models_url
    content = open_content(settings.models_url, settings.home.models, time.time)
    for digest in digests:
        size = content.size(digest)
        if size is None:
            message = f"the content {digest} is not in {content.place}"
            raise Error(
                "RuntimeUnavailable",
                message,
                target=digest,
                hint="try again; if it is still missing, upload the model again",
            )
        if writer.add(f"models/{digest}", size, content.read(digest, 0, size, verified=False)) != digest:
            raise damaged(digest, f"the content {digest} in {content.place}")
    return "included"


def _add_files(writer: archive.Writer, directory: Path) -> None:
    if directory.is_dir():
        for path in sorted(directory.iterdir()):
            # Names with a leading dot are temporary files from an interrupted write.
            if path.is_file() and not path.name.startswith("."):
                writer.add_bytes(f"{directory.name}/{path.name}", path.read_bytes())


def _note_elsewhere(settings: Settings, left_out: list[str]) -> None:
    for what, place in (("credentials", settings.credentials_directory), ("certificates", settings.tls_directory)):
        if place is not None:
            left_out.append(f"the {what} stay in {place}")


def _require_supported(manifest: dict[str, Any], file: Path) -> None:
    if manifest.get("format") != FORMAT or str(manifest.get("revision")) > REVISION:
        message = f"{file} was made by version {manifest.get('version')}; this is {VERSION}"
        raise Error("Unsupported", message, target=str(file), hint="install that version, or a newer one")


def _files(reader: archive.Reader, settings: Settings) -> list[tuple[Path, bytes]]:
    """Credentials and certificates that do not exist yet. Raises Error Conflict if different ones
    exist."""
    home = settings.home
    places = {place.name: place for place in (home.credentials, home.certificates)}
    files = []
    for name in reader.names:
        directory, _, file = name.partition("/")
        if directory not in places:
            continue
        path, data = places[directory] / file, b"".join(reader.read(name))
        if not path.exists():
            files.append((path, data))
        elif path.read_bytes() != data:
            message = f"{home.root} is not empty: it has a different {name}"
            raise Error("Conflict", message, target=str(path), hint="set ML_HOME to an empty directory")
    return files


def _require_intact(reader: archive.Reader, file: Path) -> None:
    """Raises Error LocalFileError for content that was damaged before it was backed up."""
    for name in reader.names:
        directory, _, digest = name.partition("/")
        if directory == "models" and reader.sha256(name) != digest:
            message = f"{file} is damaged: the content of {name} is not what its name says"
            raise Error("LocalFileError", message, hint="use another backup")


def _restore_content(reader: archive.Reader, settings: Settings) -> None:
    content: Content | None = None
    for name in reader.names:
        if not name.startswith("models/"):
            continue
        content = content or open_content(settings.models_url, settings.home.models, time.time)
        with content.begin(reader.size(name)) as upload:
            for data in reader.read(name):
                upload.write(data)
            upload.finish()


def _summary(manifest: dict[str, Any], file: Path) -> dict[str, Any]:
    return {"file": str(file), **{name: value for name, value in manifest.items() if name != "entries"}}
