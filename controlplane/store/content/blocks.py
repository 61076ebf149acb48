"""Blocks: parts of a large blob, uploaded one by one and committed as a list.

Decides how long a block is kept and how blocks become one file. A block belongs to one path, so it
has its own name in the content store. Must not know blobs.
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
#: Azure's limit on uncommitted blocks of a blob.
_UNCOMMITTED_MAX = 100_000


class Blocks:
    """Thread-safe."""

    def __init__(self, database: Database, content: Content) -> None:
        self._database, self._content = database, content

    def put(self, path: str, block_id: str, upload: Upload, expected_md5: bytes | None, *, now: float) -> None:
        """Stores ``upload`` as a block, replacing a block with the same id."""
        if not 0 < len(block_id) <= _ID_LENGTH:
            upload.abort()
            raise Error(
                "InvalidBlockId",
                f"the block id has {len(block_id)} characters; allowed: 1 to {_ID_LENGTH}",
                target=path,
            )
        self._check_block_count(path, upload)
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

    def _check_block_count(self, path: str, upload: Upload) -> None:
        """Raises Error BlockCountExceedsLimit."""
        with self._database.read() as connection:
            query = select(func.count()).select_from(blocks).where(blocks.c.path == path)
            count = connection.execute(query).scalar_one()
        if count >= _UNCOMMITTED_MAX:
            upload.abort()
            message = f"{path} has {count} uncommitted blocks; at most {_UNCOMMITTED_MAX}"
            raise Error(
                "BlockCountExceedsLimit", message, target=path, hint="commit them, or wait a day until they expire"
            )

    def find(self, path: str, block_ids: Sequence[str]) -> tuple[list[str], int] | None:
        """The content names of these blocks, in order, and their total size in bytes. None if one
        is missing."""
        with self._database.read() as connection:
            query = select(blocks.c.block_id, blocks.c.file, blocks.c.size).where(blocks.c.path == path)
            uploaded = {row.block_id: (str(row.file), int(row.size)) for row in connection.execute(query)}
        if not uploaded.keys() >= set(block_ids):
            return None
        selected = [uploaded[block_id] for block_id in block_ids]
        return [name for name, _ in selected], sum(size for _, size in selected)

    def copy(self, names: Sequence[str], upload: Upload) -> None:
        """Writes the blocks to ``upload`` in order. Raises Error Conflict if another commit has
        deleted them."""
        for name in names:
            try:
                chunks = self._content.read_block(name)
            except LookupError as exc:
                raise Error(
                    "Conflict", "the blocks were committed or deleted meanwhile", hint="upload the file again"
                ) from exc
            for data in chunks:
                upload.write(data)

    def drop(self, path: str) -> None:
        """Deletes all blocks of a path."""
        with self._database.write() as connection:
            names = connection.execute(select(blocks.c.file).where(blocks.c.path == path)).scalars().all()
            connection.execute(delete(blocks).where(blocks.c.path == path))
        self._content.drop_blocks(names)

    def drop_expired(self, before: float) -> None:
        """Deletes blocks uploaded before ``before``, and files without a row, left by a process
        that died."""
        with self._database.write() as connection:
            connection.execute(delete(blocks).where(blocks.c.created_at < before))
            kept = frozenset(connection.execute(select(blocks.c.file)).scalars())
        self._content.drop_unfinished(before, kept)
