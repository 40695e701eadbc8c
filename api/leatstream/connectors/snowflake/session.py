"""Sessions with Snowflake, by its connector for Python, and those that Spark's workers keep."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

from leatstream.connectors.snowflake.settings import SnowflakeConfig, key_bytes
from leatstream.connectors.upper_names import for_login
from leatstream.errors import StoreError
from leatstream.model.extras import install_extra

if TYPE_CHECKING:
    from snowflake.connector import SnowflakeConnection

_CONNECT, _ANSWER = 10.0, 60.0  # seconds
Rows = list[tuple[Any, ...]]
kept: dict[tuple[SnowflakeConfig, str, str, float], SnowflakeConnection] = {}
"""Of this worker, which Spark uses for one task after the other."""


def connect(
    config: SnowflakeConfig, timeout: float, database: str = "", schema: str = "", statement: float = 0.0
) -> SnowflakeConnection:
    """A session that commits each statement by itself; values are bound as ``?``, times are UTC.

    Args:
        config: settings with the secrets.
        timeout: seconds for connecting, and for each statement unless ``statement`` says more.
        database: the current one; empty = none.
        schema: the current one; empty = none.
        statement: seconds for a statement; 0 = ``timeout``.

    Raises:
        snowflake.connector.errors.Error: the account cannot be reached or refuses the login.
        StoreError: the client library is missing, or the settings name no way to log in.
    """
    try:
        import snowflake.connector as client
    except ModuleNotFoundError:
        raise StoreError(
            "store-rejected",
            "The client library of Snowflake is not installed here.",
            hint=install_extra("snowflake"),
        ) from None
    # It logs each statement, and each attempt to connect.
    logging.getLogger("snowflake.connector").setLevel(logging.CRITICAL)
    scheme, host, port = config.address
    seconds = statement or timeout
    names = {"database": database, "schema": schema}
    return client.connect(
        account=config.account,
        user=config.username,
        **_login(config),
        host=host,
        port=port,
        protocol=scheme,
        role=for_login(config.role) if config.role else None,
        warehouse=for_login(config.warehouse),
        **{name: for_login(value) for name, value in names.items() if value},
        login_timeout=max(1, round(timeout)),
        # It repeats requests that fail with a status from 500 on, until then. After a statement that takes
        # longer it asks every 45 s.
        network_timeout=max(1, round(min(seconds, _ANSWER))),
        socket_timeout=max(1, round(min(seconds, _ANSWER))),
        # Otherwise it asks the addresses of three clouds for where it runs.
        platform_detection_timeout_seconds=0,
        paramstyle="qmark",
        application="leatstream",
        client_session_keep_alive=False,
        session_parameters={
            "QUERY_TAG": "leatstream",
            "AUTOCOMMIT": True,
            "ABORT_DETACHED_QUERY": True,
            "STATEMENT_TIMEOUT_IN_SECONDS": max(1, round(seconds)),
            "LOCK_TIMEOUT": max(1, round(min(seconds, 60.0))),
            "CLIENT_OUT_OF_BAND_TELEMETRY_ENABLED": False,
            "CLIENT_TELEMETRY_ENABLED": False,
            # What an account or a user is set to may say otherwise.
            "TIMEZONE": "UTC",
            "DATE_INPUT_FORMAT": "AUTO",
            "TIME_INPUT_FORMAT": "AUTO",
            "TIMESTAMP_INPUT_FORMAT": "AUTO",
            "BINARY_INPUT_FORMAT": "HEX",
        },
    )


def _login(config: SnowflakeConfig) -> dict[str, Any]:
    if config.private_key is not None and config.login != "password":
        return {"private_key": key_bytes(config.private_key, config.private_key_passphrase)}
    if config.password is not None and config.login != "key_pair":
        return {"password": config.password.get_secret_value()}
    missing = {"key_pair": "no private key", "password": "no password"}
    without = missing[config.login] if config.login else "neither a private key nor a password"
    raise StoreError(
        "store-auth-failed",
        f"User {config.username} of account {config.account} has {without} here.",
        hint="Give the store private_key ('snowflake.client.key_file' in SQL), or password.",
    )


def run(connection: SnowflakeConnection, text: str, values: tuple[Any, ...] = ()) -> Rows:
    """Run a statement and take all that it gives.

    Args:
        connection: the session.
        text: the statement.
        values: one for each ``?``.
    """
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(text, values or None)
        return [tuple(row) for row in cursor.fetchall()]


def named_rows(connection: SnowflakeConnection, text: str) -> list[dict[str, Any]]:
    """What a statement gives, by the names of its columns in lower case: SHOW gains columns over time."""
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(text)
        names = [column.name.lower() for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def changed(connection: SnowflakeConnection, text: str, values: tuple[Any, ...] = ()) -> int:
    """Run a statement that changes rows; how many it changed.

    Args:
        connection: the session.
        text: the statement.
        values: one for each ``?``.
    """
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(text, values or None)
        return cursor.rowcount or 0


def kept_session(
    config: SnowflakeConfig, database: str, schema: str, statement_seconds: float
) -> SnowflakeConnection:
    """The worker's session with this schema; a new one where it is lost. ``drop_session`` ends it.

    Args:
        config: settings with the secrets.
        database: the current one.
        schema: the current one.
        statement_seconds: how long a statement may take.

    Raises:
        snowflake.connector.errors.Error: the account cannot be reached or refuses the login.
    """
    from snowflake.connector.errors import Error

    place = (config, database, schema, statement_seconds)
    found = kept.pop(place, None)
    if found is not None:
        with contextlib.suppress(Error):
            run(found, "SELECT 1")  # needs no warehouse
            kept[place] = found
            return found
        close(found)
    kept[place] = connect(config, _CONNECT, database, schema, statement_seconds)
    return kept[place]


def drop_session(connection: SnowflakeConnection) -> None:
    """End a kept session and its transaction, after a fault; others may wait for its locks."""
    for place in [place for place, one in kept.items() if one is connection]:
        del kept[place]
    with contextlib.suppress(Exception):
        run(connection, "ROLLBACK")
    close(connection)


def close(connection: SnowflakeConnection) -> None:
    """End a session, also a broken one."""
    with contextlib.suppress(Exception):
        connection.close(retry=False)
