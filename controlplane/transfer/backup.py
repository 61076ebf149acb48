"""All that a control plane would need to go on elsewhere, in one file, and going on from it.

Decides what belongs in a backup: the database's rows as of one moment, the models' content, the credentials and the
certificates of the home. Content in an object store stays there, and the manifest says so; so do credentials and
certificates that do not lie in the home. Must not know how rows or archives are laid out.

A control plane may run while its backup is made: content never changes, and what a row refers to is not dropped. What
is restored comes into an empty database only, its rows last: until then it can be begun again.
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
from amphitrite.controlplane.store.content.content_store import Content, open_content
from amphitrite.controlplane.store.sql.tables import REVISION
from amphitrite.controlplane.store.state import row_transfer
from amphitrite.controlplane.transfer import archive, exclusive_access
from amphitrite.dataplane.machine.atomic_files import write_atomically
from amphitrite.schemas.errors import Error

FORMAT = 1
#: Parts of uploads that nobody has finished: they begin again.
LEFT_OUT = ("blocks",)


def backup(settings: Settings, file: Path) -> dict[str, Any]:
    """Write ``file`` (0600); what is in it. Raises Error LocalFileError, RuntimeUnavailable, BadArgument."""
    database = row_transfer.open_existing(settings.database_url)
    said: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "revision": REVISION,
        "created_at": datetime.fromtimestamp(time.time(), timezone.utc).isoformat(timespec="seconds"),
        "database": database.url.get_backend_name(),
        "left_out": [],
        "rows": {},
    }
    try:
        with archive.writing(file, lambda: said) as writer:
            with database.read() as connection:
                for table in row_transfer.TABLES:
                    if table.name not in LEFT_OUT:
                        said["rows"][table.name] = _add_rows(writer, table.name, row_transfer.rows(connection, table))
                digests = row_transfer.digests(connection)
            said["content"] = _add_content(writer, settings, digests, said["left_out"])
            for directory in (settings.home.credentials, settings.home.certificates):
                _add_files(writer, directory)
            _note_elsewhere(settings, said["left_out"])
    finally:
        database.close()
    return _summary(said, file)


def restore(settings: Settings, file: Path) -> dict[str, Any]:
    """Go on from ``file`` in an empty database and home; what was in it.

    Raises Error LocalFileError (it is damaged), Conflict (something is there already, a control plane runs),
    Unsupported (a newer version's).
    """
    with archive.reading(file) as reader:
        said = reader.said
        _require_known(said, file)
        settings.home.create()
        files = _files(reader, settings)
        database = row_transfer.open_empty(settings.database_url)
        try:
            with exclusive_access.alone_on(database, settings.home):
                _restore_content(reader, settings)
                for path, data in files:
                    write_atomically(path, data, mode=0o600)
                with database.write() as connection:
                    row_transfer.require_empty(database, connection)
                    for table in row_transfer.TABLES:
                        name = f"database/{table.name}.jsonl"
                        if name in said["entries"]:
                            rows = (json.loads(line) for line in reader.lines(name))
                            row_transfer.insert_rows(connection, table, rows)
        finally:
            database.close()
    return _summary(said, file)


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
        left_out.append(f"the content of models stays where it is: {settings.models_url}")
        return settings.models_url
    content = open_content(settings.models_url, settings.home.models, time.time)
    for digest in digests:
        size = content.size(digest)
        if size is None:
            message = f"the content {digest} is not in {content.place}"
            raise Error(
                "RuntimeUnavailable", message, target=digest, hint="try again; if it stays lost, upload it anew"
            )
        writer.add(f"models/{digest}", size, content.read(digest, 0, size))
    return "included"


def _add_files(writer: archive.Writer, directory: Path) -> None:
    if directory.is_dir():
        for path in sorted(directory.iterdir()):
            # A name that begins with a dot is a file that was being written when somebody pulled the plug.
            if path.is_file() and not path.name.startswith("."):
                writer.add_bytes(f"{directory.name}/{path.name}", path.read_bytes())


def _note_elsewhere(settings: Settings, left_out: list[str]) -> None:
    for what, place in (("credentials", settings.credentials_directory), ("certificates", settings.tls_directory)):
        if place is not None:
            left_out.append(f"the {what} in use stay where they are: {place}")


def _require_known(said: dict[str, Any], file: Path) -> None:
    if said.get("format") != FORMAT or str(said.get("revision")) > REVISION:
        message = f"{file} was made by version {said.get('version')}; this is {VERSION}"
        raise Error("Unsupported", message, target=str(file), hint="install that version, or a newer one")


def _files(reader: archive.Reader, settings: Settings) -> list[tuple[Path, bytes]]:
    """Credentials and certificates that are not there yet. Raises Error Conflict when others are."""
    home = settings.home
    places = {place.name: place for place in (home.credentials, home.certificates)}
    found = []
    for name in reader.names:
        directory, _, file = name.partition("/")
        if directory not in places:
            continue
        path, data = places[directory] / file, b"".join(reader.read(name))
        if not path.exists():
            found.append((path, data))
        elif path.read_bytes() != data:
            message = f"{home.root} is not empty: it has another {name}"
            raise Error("Conflict", message, target=str(path), hint="set ML_HOME to an empty directory")
    return found


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


def _summary(said: dict[str, Any], file: Path) -> dict[str, Any]:
    return {"file": str(file), **{name: value for name, value in said.items() if name != "entries"}}
