"""Who has paused a deployment, and when. Columns that may be null are only added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from amphitrite.controlplane.store.migrations import row_copies

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("deployments", sa.Column("paused_at", sa.Float(), nullable=True))
    op.add_column("deployments", sa.Column("paused_by", sa.String(length=255), nullable=True))
    row_copies.write(op.get_bind())
