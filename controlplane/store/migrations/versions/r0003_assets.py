"""Environments, code assets, and the keys that sign scoring tokens. Tables are only added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    def text(length: int) -> sa.String:
        on_postgresql = op.get_bind().dialect.name == "postgresql"
        return sa.String(length, collation="C") if on_postgresql else sa.String(length)

    op.create_table(
        "environments",
        sa.Column("key", text(255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("properties", sa.JSON(), nullable=False),
        sa.Column("is_archived", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("modified_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "environment_versions",
        sa.Column("environment", text(255), nullable=False),
        sa.Column("version", sa.String(length=255), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("is_anonymous", sa.Boolean(), nullable=False),
        sa.Column("is_archived", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("modified_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["environment"], ["environments.key"]),
        sa.PrimaryKeyConstraint("environment", "version"),
    )
    op.create_table(
        "code_versions",
        sa.Column("name", text(255), nullable=False),
        sa.Column("version", sa.String(length=255), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("hash", sa.String(length=255), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("modified_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", "version"),
    )
    op.create_index(op.f("ix_code_versions_hash"), "code_versions", ["hash"], unique=False)
    op.create_table(
        "signing_keys",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("private_key", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
