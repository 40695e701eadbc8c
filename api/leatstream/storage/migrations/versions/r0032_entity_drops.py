"""Notes of entities that are dropped, for who declares a relation on one meanwhile."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0032"
down_revision = "r0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table, shaped like every noun's."""
    op.create_table(
        "entity_drops",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_entity_drops"),
        sa.UniqueConstraint("key", name="uq_entity_drops_key"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("entity_drops")
