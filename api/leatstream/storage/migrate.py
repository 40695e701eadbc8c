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
        StackError: ``part-failed``, the catalog is that of a newer version, there is no such revision, or
            others keep the catalog busy.
    """
    engine = make_engine(url)
    try:
        with engine.execution_options(**{WRITE: True}).begin() as connection:
            target = config(connection)
            if _is_before(ScriptDirectory.from_config(target), revision, _heads(connection)):
                command.downgrade(target, revision)
            else:
                command.upgrade(target, revision)
    except sa.exc.DBAPIError as error:
        if not is_busy(error):
            raise
        raise StackError(
            "part-failed",
            "The catalog is busy: another session has not ended a change, or reads what is to be changed.",
            hint="Start again when it has ended; long transactions are in pg_stat_activity, such as a dump.",
        ) from error
    finally:
        engine.dispose()


def _heads(connection: sa.Connection) -> tuple[str, ...]:
    return MigrationContext.configure(connection).get_current_heads()


def _is_before(scripts: ScriptDirectory, revision: str, present: tuple[str, ...]) -> bool:
    """Whether a revision is older than the present ones; StackError if either is not known here."""
    order = ["base", *reversed([script.revision for script in scripts.walk_revisions()])]
    for one in present:
        if one not in order:
            if one < order[1]:
                raise _too_old(one, order[1])
            raise StackError(
                "part-failed",
                f"The catalog has the schema {one} of a newer leatstream.",
                hint="Run that version, restore the catalog's backup from before, or have that version "
                f"take it back: `leat catalog migrate --to {order[-1]}`.",
            )
    if revision == "head":
        return False
    if revision not in order:
        hint = f"Available: {', '.join(order[1:])}."
        raise StackError("part-failed", f"There is no schema {revision}.", hint=hint)
    return any(order.index(one) > order.index(revision) for one in present)


def _too_old(present: str, oldest: str) -> StackError:
    return StackError(
        "part-failed",
        f"The catalog has the schema {present}, which is older than the first release.",
        hint=f"The oldest schema that can be migrated is {oldest}. Name an empty catalog in "
        "LEATSTREAM_CATALOG_URL, run `leat catalog migrate --new`, and deploy your objects again.",
    )


def revision(url: str) -> str:
    """The schema that the catalog has; ``base`` for none."""
    engine = make_engine(url)
    try:
        with engine.connect() as connection:
            return next(iter(_heads(connection)), "base")
    finally:
        engine.dispose()


def at_head(url: str) -> bool:
    """Whether the catalog has exactly the tables that this version wants."""
    heads = set(ScriptDirectory.from_config(config()).get_heads())
    engine = make_engine(url)
    try:
        with engine.connect() as connection:
            return set(_heads(connection)) == heads
    finally:
        engine.dispose()
