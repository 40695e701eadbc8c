"""Servers that share a catalog, the queries that each looks after, and whose a driver is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0023"
down_revision = "r0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables and the drivers' column."""
    op.create_table(
        "servers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("checkpoints", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_servers"),
    )
    op.create_table(
        "query_leases",
        sa.Column("query_id", sa.Text(), nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("query_id", name="pk_query_leases"),
    )
    op.add_column("drivers", sa.Column("server", sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("drivers", "server")
    op.drop_table("query_leases")
    op.drop_table("servers")
