"""Numbers of log entries for many years: PostgreSQL's plain integers end after two milliards."""

from __future__ import annotations

from alembic import op

revision = "r0033"
down_revision = "r0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Widen them; those of SQLite have no bound."""
    _become("BIGINT")


def downgrade() -> None:
    """Narrow them."""
    _become("INTEGER")


def _become(kind: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE query_log ALTER COLUMN id TYPE {kind}")
        op.execute(f"ALTER SEQUENCE query_log_id_seq AS {kind}")
