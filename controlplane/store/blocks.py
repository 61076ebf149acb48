"""Blocks: parts of a large blob, uploaded one by one and then committed as a list.

Decides how long a part is kept and how parts become one file. Blocks are private to a path, so each is a file of its
own below ``blocks/``. Must not know what a blob is.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import delete, insert, select

from amphitrite.controlplane.store.content import ContentFiles, Upload, disk_errors
from amphitrite.controlplane.store.tables import blocks
from amphitrite.controlplane.store.transactions import Database
from amphitrite.schemas.errors import Error

_CHUNK = 1024 * 1024
_ID_LENGTH = 255


class Blocks:
    """Thread-safe."""

    def __init__(self, database: Database, files: ContentFiles) -> None:
        self._database, self._files = database, files

    def put(self, path: str, block_id: str, upload: Upload, expected_md5: bytes | None, *, now: float) -> None:
        """Keep ``upload`` as a block; one of the same id is replaced."""
        if not 0 < len(block_id) <= _ID_LENGTH:
            upload.abort()
            raise Error("BadArgument", f"not a block id of 1 to {_ID_LENGTH} characters", target=path)
        name = uuid.uuid4().hex
        upload.finish_as(self._files.blocks / name, expected_md5)
        this = (blocks.c.path == path) & (blocks.c.block_id == block_id)
        with self._database.write() as connection:
            replaced = connection.execute(select(blocks.c.file).where(this)).scalars().all()
            connection.execute(delete(blocks).where(this))
            connection.execute(
                insert(blocks).values(path=path, block_id=block_id, file=name, size=upload.size, created_at=now)
            )
        self._unlink(replaced)

    def find(self, path: str, block_ids: Sequence[str]) -> list[Path] | None:
        """The files of these blocks in order; None when one is missing."""
        with self._database.read() as connection:
            query = select(blocks.c.block_id, blocks.c.file).where(blocks.c.path == path)
            files = {row.block_id: self._files.blocks / row.file for row in connection.execute(query)}
        found = [files.get(block_id) for block_id in block_ids]
        return None if None in found else [file for file in found if file is not None]

    def copy(self, files: Sequence[Path], upload: Upload) -> None:
        """Write the blocks one after the other. Raises Error Conflict when another commit has taken them away."""
        for file in files:
            try:
                with file.open("rb") as block:
                    while data := block.read(_CHUNK):
                        upload.write(data)
            except FileNotFoundError as exc:
                raise Error(
                    "Conflict", "the blocks were committed or dropped meanwhile", hint="upload the file again"
                ) from exc

    def drop(self, path: str) -> None:
        """All blocks of a path."""
        with self._database.write() as connection:
            files = connection.execute(select(blocks.c.file).where(blocks.c.path == path)).scalars().all()
            connection.execute(delete(blocks).where(blocks.c.path == path))
        self._unlink(files)

    def drop_older(self, before: float) -> None:
        """Blocks uploaded before that time, and files that no row names (the process died in between)."""
        with self._database.write() as connection:
            connection.execute(delete(blocks).where(blocks.c.created_at < before))
            kept = set(connection.execute(select(blocks.c.file)).scalars())
        with disk_errors(self._files.root):
            for file in self._files.blocks.iterdir():
                if file.name not in kept and file.stat().st_mtime < before:
                    file.unlink(missing_ok=True)

    def _unlink(self, names: Sequence[str]) -> None:
        with disk_errors(self._files.root):
            for name in names:
                (self._files.blocks / name).unlink(missing_ok=True)
