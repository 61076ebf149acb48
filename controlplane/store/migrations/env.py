"""Alembic's environment script. It uses the connection and transaction that the caller
has opened.

Decides nothing. Must not know any revision."""

from __future__ import annotations

from alembic import context

from amphitrite.controlplane.store.sql.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
