"""Rollouts of endpoints. A new table is only added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from amphitrite.controlplane.store.migrations import row_copies

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    key = sa.String(255, collation="C") if on_postgresql else sa.String(255)
    op.create_table(
        "rollouts",
        sa.Column("endpoint", key, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("endpoint", "number"),
    )
    row_copies.write(op.get_bind())
