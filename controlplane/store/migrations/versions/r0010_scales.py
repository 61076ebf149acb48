"""The numbers of instances that scalers set, why, and the samples of demand. New tables are only
added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from amphitrite.controlplane.store.migrations import row_copies

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    key = sa.String(255, collation="C") if on_postgresql else sa.String(255)
    op.create_table(
        "deployment_scales",
        sa.Column("endpoint", key, nullable=False),
        sa.Column("deployment", key, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("scaler", sa.String(length=255), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.Float(), nullable=False),
        sa.Column("shrunk_at", sa.Float(), nullable=False),
        sa.Column("used_at", sa.Float(), nullable=False),
        sa.Column("start_s", sa.Float(), nullable=False),
        sa.Column("recommended", sa.Integer()),
        sa.PrimaryKeyConstraint("endpoint", "deployment"),
    )
    op.create_table(
        "scale_events",
        sa.Column("endpoint", key, nullable=False),
        sa.Column("deployment", key, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("before", sa.Integer(), nullable=False),
        sa.Column("after", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("by", sa.String(length=255), nullable=False),
        sa.Column("mode", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("endpoint", "deployment", "number"),
    )
    op.create_table(
        "demand_samples",
        sa.Column("id", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("agent", key, nullable=False),
        sa.Column("flush", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("demand_samples_by_agent", "demand_samples", ["agent", "flush"])
    row_copies.write(op.get_bind())
