"""Computes, reports of agents, and where a deployment runs. Programs of revision 0001 go on working
on it: tables are added, and a column with a default, which they neither name nor see."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

#: table -> columns that are put in order, or searched by their beginning, and how long they are.
SORTED = {
    "blobs": {"path": 1024},
    "blocks": {"path": 1024},
    "endpoints": {"key": 255},
    "deployments": {"endpoint": 255, "key": 255},
    "models": {"key": 255},
    "model_versions": {"model": 255},
    "model_files": {"model": 255, "path": 1024, "blob_path": 1024},
}


def upgrade() -> None:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    if on_postgresql:
        # A database's own order may be that of a language; SQLite's is that of the characters'
        # numbers.
        for table, columns in SORTED.items():
            for column, length in columns.items():
                op.execute(f'ALTER TABLE {table} ALTER COLUMN {column} TYPE varchar({length}) COLLATE "C"')

    def text(length: int) -> sa.String:
        return sa.String(length, collation="C") if on_postgresql else sa.String(length)

    op.add_column("deployments", sa.Column("compute", sa.String(length=255), server_default="local", nullable=False))
    op.create_table(
        "computes",
        sa.Column("key", text(255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("kubeconfig", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("modified_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "agent_reports",
        sa.Column("id", text(255), nullable=False),
        sa.Column("acknowledged_version", sa.BigInteger(), nullable=False),
        sa.Column("drained_version", sa.BigInteger(), nullable=False),
        sa.Column("rejected_version", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("seen_at", sa.Float(), nullable=False),
        sa.Column("proxy_pid", sa.BigInteger(), nullable=True),
        sa.Column("proxy_version", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    support = op.create_table(
        "schema_support",
        sa.Column("oldest", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("oldest"),
    )
    op.bulk_insert(support, [{"oldest": "0001"}])
