"""The number of the leader's term, which fences off earlier leaders. A new table is only added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "leader_terms",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("term", sa.BigInteger(), nullable=False),
    )
