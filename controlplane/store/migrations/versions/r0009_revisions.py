"""Earlier documents of endpoints and deployments. A new table is only added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from amphitrite.controlplane.store.migrations import row_copies

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    key = sa.String(255, collation="C") if on_postgresql else sa.String(255)
    op.create_table(
        "revisions",
        sa.Column("endpoint", key, nullable=False),
        sa.Column("deployment", key, nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("author", sa.String(length=255), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("cause", sa.String(length=32), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("endpoint", "deployment", "generation"),
    )
    row_copies.write(op.get_bind())
