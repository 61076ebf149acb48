"""The key pairs that sign scoring tokens, as rows.

Decides how a key is stored. Works inside a transaction of its caller. Must not know which key
signs.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, delete, insert, select

from amphitrite.controlplane.core.planning.key_rotation import SigningKey
from amphitrite.controlplane.store.sql.tables import signing_keys
from amphitrite.dataplane.table.routing_table import Secret


def list_all(connection: Connection) -> tuple[SigningKey, ...]:
    """All keys, oldest first."""
    query = select(signing_keys).order_by(signing_keys.c.created_at, signing_keys.c.id)
    return tuple(
        SigningKey(row["id"], Secret(row["private_key"]), row["created_at"])
        for row in connection.execute(query).mappings()
    )


def change(connection: Connection, added: Collection[SigningKey], removed: Collection[SigningKey]) -> None:
    if removed:
        connection.execute(delete(signing_keys).where(signing_keys.c.id.in_([one.id for one in removed])))
    for one in added:
        row = {"id": one.id, "private_key": one.private_key.reveal(), "created_at": one.created_at}
        connection.execute(insert(signing_keys).values(row))
