"""A schema after the newest one, so that tests have two to go between."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from leatstream.storage import migrate

NEXT = "r9000"

_SCRIPT = '''"""One table more."""

import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{before}"


def upgrade():
    op.create_table("more", sa.Column("id", sa.Text(), primary_key=True))


def downgrade():
    op.drop_table("more")
'''


def next_schema(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Have the code know NEXT too, which is then the newest."""
    (before,) = migrate.ScriptDirectory.from_config(migrate.config()).get_heads()
    scripts = directory / "migrations"
    shutil.copytree(migrate.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    (scripts / "versions" / f"{NEXT}_more.py").write_text(_SCRIPT.format(revision=NEXT, before=before))
    monkeypatch.setattr(migrate, "SCRIPTS", scripts)
