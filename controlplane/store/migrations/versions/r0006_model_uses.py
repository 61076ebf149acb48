"""When each model version was last used. A column that may be null is only added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("model_versions", sa.Column("used_at", sa.Float(), nullable=True))
