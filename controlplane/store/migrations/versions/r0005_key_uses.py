"""When each key was last used. A table is only added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "key_uses",
        sa.Column("endpoint", sa.String(255, collation="C") if on_postgresql else sa.String(255), nullable=False),
        sa.Column("credential", sa.String(32), nullable=False),
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("endpoint", "credential"),
    )
