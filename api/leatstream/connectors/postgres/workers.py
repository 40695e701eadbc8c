"""Connections of Spark's Python workers, which are kept from one task to the next."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from leatstream.connectors.postgres.settings import PostgresConfig, connect

if TYPE_CHECKING:
    import psycopg

_CONNECT = 10.0  # seconds
kept: dict[tuple[PostgresConfig, float, float, bool], psycopg.Connection[Any]] = {}
"""Of this worker, which Spark uses for one task after the other."""


def kept_connection(
    config: PostgresConfig, statement_seconds: float, lock_seconds: float, *, by_index: bool = False
) -> psycopg.Connection[Any]:
    """The worker's connection to this database with these limits; a new one where it is lost.

    With ``by_index`` the server reads a table whole only where no index leads to the rows: what a statement
    costs is not to depend on what the planner believes of the table's size.

    Raises:
        psycopg.Error: the server cannot be reached or refuses the login.
    """
    import psycopg

    place = (config, statement_seconds, lock_seconds, by_index)
    found = kept.pop(place, None)
    if found is not None:
        with contextlib.suppress(psycopg.Error):
            found.execute("SELECT 1")
            kept[place] = found
            return found
        found.close()
    made = connect(config, _CONNECT)
    made.execute(
        "SELECT set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false)",
        (str(int(statement_seconds * 1000)), str(int(lock_seconds * 1000))),
    )
    if by_index:
        made.execute(
            "SELECT set_config(name, 'off', false)"
            " FROM unnest(ARRAY['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin']) AS name"
        )
    kept[place] = made
    return made
