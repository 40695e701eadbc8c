"""No note of a token's last use: nobody wrote it, and nothing shows tokens.

To write it would make a change of the catalog of requests that only read. Servers of the version before,
which run beside this one during an update, neither read nor write the column.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0031"
down_revision = "r0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the column."""
    op.drop_column("tokens", "last_used")


def downgrade() -> None:
    """Put it back, empty as it was."""
    op.add_column("tokens", sa.Column("last_used", sa.DateTime(timezone=True), nullable=True))
