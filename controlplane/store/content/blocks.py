"""Blocks: parts of a large blob, uploaded one by one and then committed as a list.

Decides how long a part is kept and how parts become one file. Blocks are private to a path, so each is kept under a
name of its own, beside the content. Must not know what a blob is.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import delete, func, insert, select

from amphitrite.controlplane.store.content.content_store import Content
from amphitrite.controlplane.store.content.spool import Upload
from amphitrite.controlplane.store.sql.tables import blocks
from amphitrite.controlplane.store.sql.transactions import Database
from amphitrite.schemas.errors import Error

_ID_LENGTH = 255
#: Azure's own limit.
_UNCOMMITTED_MAX = 100_000


class Blocks:
    """Thread-safe."""

    def __init__(self, database: Database, content: Content) -> None:
        self._database, self._content = database, content

    def put(self, path: str, block_id: str, upload: Upload, expected_md5: bytes | None, *, now: float) -> None:
        """Keep ``upload`` as a block; one of the same id is replaced."""
        if not 0 < len(block_id) <= _ID_LENGTH:
            upload.abort()
            raise Error("InvalidBlockId", f"not a block id of 1 to {_ID_LENGTH} characters", target=path)
        self._require_room(path, upload)
        name = uuid.uuid4().hex
        upload.finish_as_block(name, expected_md5)
        this = (blocks.c.path == path) & (blocks.c.block_id == block_id)
        with self._database.write() as connection:
            replaced = connection.execute(select(blocks.c.file).where(this)).scalars().all()
            connection.execute(delete(blocks).where(this))
            connection.execute(
                insert(blocks).values(path=path, block_id=block_id, file=name, size=upload.size, created_at=now)
            )
        self._content.drop_blocks(replaced)

    def _require_room(self, path: str, upload: Upload) -> None:
        """Raises Error("BlockCountExceedsLimit")."""
        with self._database.read() as connection:
            query = select(func.count()).select_from(blocks).where(blocks.c.path == path)
            count = connection.execute(query).scalar_one()
        if count >= _UNCOMMITTED_MAX:
            upload.abort()
            message = f"{path} has {count} blocks that no list has named yet; at most {_UNCOMMITTED_MAX}"
            raise Error("BlockCountExceedsLimit", message, target=path, hint="commit them, or wait a day")

    def find(self, path: str, block_ids: Sequence[str]) -> tuple[list[str], int] | None:
        """The names of these blocks in order, and their bytes together; None when one is missing."""
        with self._database.read() as connection:
            query = select(blocks.c.block_id, blocks.c.file, blocks.c.size).where(blocks.c.path == path)
            found = {row.block_id: (str(row.file), int(row.size)) for row in connection.execute(query)}
        if not found.keys() >= set(block_ids):
            return None
        listed = [found[block_id] for block_id in block_ids]
        return [name for name, _ in listed], sum(size for _, size in listed)

    def copy(self, names: Sequence[str], upload: Upload) -> None:
        """Write the blocks one after the other. Raises Error Conflict when another commit has taken them away."""
        for name in names:
            try:
                chunks = self._content.read_block(name)
            except LookupError as exc:
                raise Error(
                    "Conflict", "the blocks were committed or dropped meanwhile", hint="upload the file again"
                ) from exc
            for data in chunks:
                upload.write(data)

    def drop(self, path: str) -> None:
        """All blocks of a path."""
        with self._database.write() as connection:
            names = connection.execute(select(blocks.c.file).where(blocks.c.path == path)).scalars().all()
            connection.execute(delete(blocks).where(blocks.c.path == path))
        self._content.drop_blocks(names)

    def drop_older(self, before: float) -> None:
        """Blocks uploaded before that time, and what no row names (the process died in between)."""
        with self._database.write() as connection:
            connection.execute(delete(blocks).where(blocks.c.created_at < before))
            kept = frozenset(connection.execute(select(blocks.c.file)).scalars())
        self._content.drop_leftovers(before, kept)
