"""The table ``LEATSTREAM_BATCHES`` of the store's user: for each query the last batch that was committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leatstream.connectors.oracle.errors import Place, library
from leatstream.connectors.oracle.names import BATCHES
from leatstream.connectors.oracle.session import connected
from leatstream.connectors.oracle.settings import OracleConfig
from leatstream.connectors.upper_names import quoted

if TYPE_CHECKING:
    import oracledb


def batches_table(config: OracleConfig) -> str:
    """The table of batch numbers in a statement."""
    return quoted(config.own_schema, BATCHES)


def make(cursor: oracledb.Cursor, statement: str) -> None:
    """Create what is not there yet; another query may do the same now."""
    try:
        cursor.execute(statement)
    except library().DatabaseError as error:
        if error.args[0].full_code != "ORA-00955":
            raise


def forget(store: str, config: OracleConfig, query: str, timeout: float) -> None:
    """Delete a query's row of ``LEATSTREAM_BATCHES``, if it has one.

    Args:
        store: the store's name.
        config: settings with the secret.
        query: the query's id.
        timeout: seconds.
    """
    place = Place(store, config.where, "forgetting batches")
    with connected(place, config, timeout) as connection, connection.cursor() as cursor:
        try:
            cursor.execute(f'DELETE FROM {batches_table(config)} WHERE "QUERY" = :1', [query])  # noqa: S608
        except library().DatabaseError as error:
            if error.args[0].full_code != "ORA-00942":
                raise
        connection.commit()
