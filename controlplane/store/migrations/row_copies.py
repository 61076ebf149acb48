"""A second copy of each row in SQLite's file, so that a changed byte is noticed.

SQLite keeps no checksums of its pages: a byte of a value that changes on the disk is a valid other
value. An index of all columns is a second copy, which SQLite itself writes with each row, whichever
release writes it. ``PRAGMA integrity_check`` compares the two. PostgreSQL has checksums of its own.

Decides which indexes those are. Must not know what rows mean. A revision that adds a table or a
column calls ``write`` again.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

PREFIX = "copy_of_"
#: A start checks the first. The second holds one large value, which the reconciler compares with
#: what it plans, and publishes again if they differ.
WITHOUT = ("alembic_version", "routing_tables")


def write(connection: Connection) -> None:
    """Creates the indexes anew. Does nothing on PostgreSQL."""
    if connection.dialect.name != "sqlite":
        return
    inspector = inspect(connection)
    for table in inspector.get_table_names():
        columns = [str(column["name"]) for column in inspector.get_columns(table)]
        if table in WITHOUT or set(columns) == set(inspector.get_pk_constraint(table)["constrained_columns"]):
            continue  # The index of a key with all columns is a copy already.
        quoted = ", ".join(f'"{name}"' for name in columns)
        connection.execute(text(f'DROP INDEX IF EXISTS "{PREFIX}{table}"'))
        connection.execute(text(f'CREATE INDEX "{PREFIX}{table}" ON "{table}" ({quoted})'))
