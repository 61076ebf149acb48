"""A second copy of each row in SQLite. Indexes are only added."""

from __future__ import annotations

from alembic import op

from amphitrite.controlplane.store.migrations import row_copies

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    row_copies.write(op.get_bind())
