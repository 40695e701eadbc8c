"""Connections to an Oracle database, with python-oracledb's thin mode: no Oracle software is needed.

A listener that accepts a connection and then stays silent holds the library for ever, whatever timeouts it is
given. So a thread connects, and the caller waits for it with a deadline.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from leatstream.connectors.oracle.errors import Place, as_store_errors, library
from leatstream.connectors.oracle.settings import OracleConfig

if TYPE_CHECKING:
    import oracledb

CONNECT = 10.0  # seconds
# Names and texts compare as they are; a time without a zone is UTC.
_SESSION = "ALTER SESSION SET TIME_ZONE = 'UTC' NLS_COMP = 'BINARY' NLS_SORT = 'BINARY'"
kept: dict[tuple[OracleConfig, float], oracledb.Connection] = {}
"""Of this process: Spark uses a Python worker for one task after the other."""


class _Connecting(threading.Thread):
    """Connects; what comes after the deadline is closed again."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(name="leat-oracle-connect", daemon=True)
        self._arguments = arguments
        self._lock = threading.Lock()
        self._late = False
        self.connection: oracledb.Connection | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            made = library().connect(**self._arguments)
        except BaseException as error:
            self.error = error
            return
        with self._lock:
            if not self._late:
                self.connection = made
                return
        made.close()

    def result(self, timeout: float) -> oracledb.Connection:
        """The connection, or its error; TimeoutError after so many seconds."""
        self.start()
        self.join(timeout)
        with self._lock:
            self._late = self.connection is None
        if self.connection is not None:
            return self.connection
        raise self.error or TimeoutError


def connect(config: OracleConfig, timeout: float) -> oracledb.Connection:
    """A connection in a transaction of its own.

    Args:
        config: settings with the secret.
        timeout: seconds for connecting, and for each answer of the server after that.

    Raises:
        oracledb.Error: the server cannot be reached or refuses the login.
        TimeoutError: it does not answer.
    """
    arguments: dict[str, Any] = {
        "user": config.username,
        "password": config.password.get_secret_value() if config.password else None,
        "host": config.host,
        "port": config.port,
        "service_name": config.service,
        "protocol": "tcps" if config.tls else "tcp",
        "tcp_connect_timeout": timeout,
        "retry_count": 0,
        "program": "leatstream",
    }
    if config.tls:
        arguments["ssl_context"] = ssl.create_default_context(cadata=config.ca_certificate)
    connection = _Connecting(arguments).result(timeout)
    try:
        connection.call_timeout = max(1, int(timeout * 1000))
        with connection.cursor() as cursor:
            cursor.execute(_SESSION)
    except BaseException:
        discard(connection)
        raise
    return connection


@contextlib.contextmanager
def connected(
    place: Place, config: OracleConfig, timeout: float, table: str | None = None
) -> Iterator[oracledb.Connection]:
    """A connection for one call, whose errors are StoreErrors; what is not committed is rolled back.

    Args:
        place: its address, for messages.
        config: settings with the secret.
        timeout: seconds for connecting and for each statement.
        table: the table that rows are written to; see ``store_error``.
    """
    with as_store_errors(place, timeout, table):
        connection = connect(config, timeout)
        try:
            yield connection
        finally:
            discard(connection)


@contextlib.contextmanager
def transaction(
    place: Place, config: OracleConfig, timeout: float, table: str | None = None
) -> Iterator[oracledb.Connection]:
    """A transaction on the process's connection, which is kept for the next one unless something fails.

    Args:
        place: its address, for messages.
        config: settings with the secret.
        timeout: seconds for each statement.
        table: the table that rows are written to; see ``store_error``.
    """
    with as_store_errors(place, timeout, table):
        connection = _kept_connection(config, timeout)
        try:
            yield connection
            connection.commit()
        except BaseException:
            discard(connection)
            raise
        kept[config, timeout] = connection


def _kept_connection(config: OracleConfig, timeout: float) -> oracledb.Connection:
    found = kept.pop((config, timeout), None)
    if found is not None:
        try:
            found.ping()
        except library().Error:
            discard(found)
        else:
            return found
    made = connect(config, CONNECT)
    made.call_timeout = int(timeout * 1000)
    return made


def discard(connection: oracledb.Connection) -> None:
    """Close a connection that may be broken; Oracle rolls back what is open."""
    with contextlib.suppress(library().Error):
        connection.rollback()
    with contextlib.suppress(library().Error):
        connection.close()
