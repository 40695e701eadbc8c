"""The log of each query: events and versions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0010"
down_revision = "r0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "query_log",
        sa.Column("id", sa.Integer(), nullable=False, autoincrement=True),
        sa.Column("query_id", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_query_log"),
    )
    op.create_index("ix_query_log_query_id", "query_log", ["query_id", "topic", "id"])


def downgrade() -> None:
    """Drop it."""
    op.drop_index("ix_query_log_query_id", table_name="query_log")
    op.drop_table("query_log")
