"""What the proxies have counted. A table is only added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "metric_minutes",
        sa.Column("agent", sa.String(255, collation="C") if on_postgresql else sa.String(255), nullable=False),
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("agent", "minute"),
    )
