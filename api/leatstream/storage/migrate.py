"""Brings a catalog's tables to this version's, step by step."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from leatstream.errors import StackError
from leatstream.storage.engine import WRITE, is_busy, make_engine

SCRIPTS = Path(__file__).parent / "migrations"


def config(connection: sa.Connection | None = None) -> Config:
    """Alembic's configuration, without a file."""
    made = Config()
    made.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    made.set_main_option("path_separator", "os")
    made.attributes["connection"] = connection
    return made


def migrate(url: str, revision: str = "head") -> None:
    """Bring the catalog to a revision, creating it if it is new. One transaction; safe to call twice.

    Raises:
        StackError: ``part-failed``, the catalog is that of a newer version, or others keep it busy.
    """
    engine = make_engine(url)
    try:
        with engine.execution_options(**{WRITE: True}).begin() as connection:
            target = config(connection)
            _refuse_newer(connection, ScriptDirectory.from_config(target))
            if revision == "base" or revision.startswith("-"):
                command.downgrade(target, revision)
            else:
                command.upgrade(target, revision)
    except sa.exc.DBAPIError as error:
        if not is_busy(error):
            raise
        raise StackError(
            "part-failed",
            "the catalog is busy: another session has not ended a change, or reads what is to be changed",
            hint="start again when it has ended; long transactions are in pg_stat_activity, such as a dump",
        ) from error
    finally:
        engine.dispose()


def _refuse_newer(connection: sa.Connection, scripts: ScriptDirectory) -> None:
    known = {script.revision for script in scripts.walk_revisions()}
    for revision in MigrationContext.configure(connection).get_current_heads():
        if revision not in known:
            raise StackError(
                "part-failed",
                f"the catalog has the schema {revision} of a newer leatstream",
                hint="run that version, or restore the catalog's backup from before",
            )


def at_head(url: str) -> bool:
    """Whether the catalog has exactly the tables that this version wants."""
    heads = set(ScriptDirectory.from_config(config()).get_heads())
    engine = make_engine(url)
    try:
        with engine.connect() as connection:
            return set(MigrationContext.configure(connection).get_current_heads()) == heads
    finally:
        engine.dispose()
