"""What servers note of their drivers, for people."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0036"
down_revision = "r0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("drivers", sa.Column("report", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("drivers", "report")
