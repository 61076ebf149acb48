"""Azure Monitor's autoscale settings. A new table is only added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from amphitrite.controlplane.store.migrations import row_copies

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    key = sa.String(255, collation="C") if on_postgresql else sa.String(255)
    op.create_table(
        "autoscale_settings",
        sa.Column("key", key, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("endpoint", key, nullable=False),
        sa.Column("deployment", key, nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("etag", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("modified_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
        sa.UniqueConstraint("endpoint", "deployment", name="autoscale_settings_by_target"),
    )
    row_copies.write(op.get_bind())
