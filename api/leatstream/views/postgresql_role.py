"""The role that materialized views are kept with: it may touch their schema, and nothing of the catalog.

Jobs log in with it, and a job may run users' code. The API reads views with it too: code that has the
role could replace a table by a view of its own, which would then run with the rights of the reader.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from leatstream.errors import StoreError
from leatstream.views.postgresql_writer import SCHEMA, connect, view_errors

_LOG = logging.getLogger(__name__)
_MAKING = 0x6C76726F  # of servers that start at once one makes the role, and the others find it
_FOREIGN = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND pg_get_userbyid(c.relowner) <> %s
"""


class NoRole(Exception):
    """Views cannot be kept apart from the catalog; the text says why."""


def without_password(url: str) -> tuple[str, str | None]:
    """A URL for psycopg without its password, and the password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = f"{parts.username}@" if parts.username else ""
    plain = urlunsplit(("postgresql", user + host, parts.path, parts.query, ""))
    return plain, unquote(parts.password) if parts.password else None


def make_role(catalog_url: str, password: str) -> str:
    """Make or renew the role for the views of a catalog, and let it have their schema.

    Args:
        catalog_url: of the catalog, whose role must be allowed to make roles.
        password: that the role gets; servers of one catalog must say the same.

    Returns:
        The URL that the role logs in with.

    Raises:
        NoRole: why that is not possible.
        StoreError: the database does not answer.
    """
    plain, own = without_password(catalog_url)
    with view_errors(), connect(plain, own) as connection:
        role = _role_name(connection.info.dbname)
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
                _keep_role(connection, role, password)
                _give_schema(connection, role)
        except psycopg.errors.InsufficientPrivilege as error:
            raise NoRole(f"the catalog's role may not make one: {error.diag.message_primary}") from None
        _warn_of_rights(connection, role)
    url = _login(plain, role, password)
    _try(url)
    return url


def use_role(catalog_url: str, url: str) -> None:
    """Let a role that somebody else has made have the schema of the views, where it does not have it.

    Raises:
        NoRole: why it cannot be used.
        StoreError: the database does not answer.
    """
    plain, own = without_password(catalog_url)
    given, password = without_password(url)
    role = urlsplit(given).username or ""
    if not role or role == urlsplit(plain).username:
        raise NoRole("LEATSTREAM_VIEWS_URL must name another role than the catalog's")
    if _place(plain) == _place(given):
        try:
            with connect(plain, own) as connection, connection.transaction():
                _give_schema(connection, role)
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedObject) as error:
            raise NoRole(f"role {role} cannot be given the schema: {error.diag.message_primary}") from None
    else:
        with connect(given, password) as connection, view_errors():
            _make_schema(connection)
    _try(url)


def _role_name(database: str) -> str:
    """Roles are common to all databases of a server, which may hold several catalogs."""
    return f"{SCHEMA}_{hashlib.sha256(database.encode()).hexdigest()[:12]}"


def _keep_role(connection: psycopg.Connection[Any], role: str, password: str) -> None:
    # The server gets, and may log, only what it stores of a password.
    stored = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    statement = "ALTER ROLE {} LOGIN PASSWORD {}" if known else "CREATE ROLE {} LOGIN PASSWORD {}"
    connection.execute(sql.SQL(statement).format(sql.Identifier(role), sql.Literal(stored)))


def _give_schema(connection: psycopg.Connection[Any], role: str) -> None:
    """The schema's use, and the tables that the catalog's role has made there before."""
    name, schema = sql.Identifier(role), sql.Identifier(SCHEMA)
    _make_schema(connection)
    connection.execute(sql.SQL("GRANT USAGE, CREATE ON SCHEMA {} TO {}").format(schema, name))
    with contextlib.suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
        database = sql.Identifier(connection.info.dbname)  # everybody has these, where nobody has taken them
        connection.execute(sql.SQL("GRANT CONNECT, TEMPORARY ON DATABASE {} TO {}").format(database, name))
    tables = [row[0] for row in connection.execute(_FOREIGN, (SCHEMA, role)).fetchall()]
    member = connection.execute("SELECT pg_has_role(%s, 'MEMBER')", (role,)).fetchone()
    if tables and member == (False,):  # only members may give something to a role
        connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(name))
    for table in tables:
        place = sql.Identifier(SCHEMA, table)
        connection.execute(sql.SQL("ALTER TABLE {} OWNER TO {}").format(place, name))


def _make_schema(connection: psycopg.Connection[Any]) -> None:
    # IF NOT EXISTS asks for the right to make one even where it exists.
    if connection.execute("SELECT to_regnamespace(%s)", (SCHEMA,)).fetchone() == (None,):
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))


def _warn_of_rights(connection: psycopg.Connection[Any], role: str) -> None:
    """Databases made before PostgreSQL 15 let everybody make functions where the catalog's tables are."""
    found = connection.execute(
        "SELECT current_schema(), has_schema_privilege(%s, current_schema(), 'CREATE')", (role,)
    ).fetchone()
    if found is not None and found[1]:
        _LOG.warning(
            "role %s may make objects in the catalog's schema, as everybody may; revoke that: "
            "REVOKE CREATE ON SCHEMA %s FROM PUBLIC",
            role,
            found[0],
        )


def _login(plain: str, role: str, password: str) -> str:
    parts = urlsplit(plain)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(
        ("postgresql", f"{role}:{quote(password, safe='')}@{host}", parts.path, parts.query, "")
    )


def _place(url: str) -> tuple[str | None, int, str]:
    parts = urlsplit(url)
    return parts.hostname, parts.port or 5432, parts.path.strip("/")


def _try(url: str) -> None:
    """See that the role can log in and is what it should be."""
    plain, password = without_password(url)
    role = urlsplit(plain).username
    try:
        connection = connect(plain, password)
    except StoreError as error:
        raise NoRole(f"role {role} cannot log in: {error.detail}") from None
    with connection:
        row = connection.execute(
            "SELECT rolsuper, has_schema_privilege(%(s)s, 'USAGE') AND has_schema_privilege(%(s)s, 'CREATE')"
            " FROM pg_roles WHERE rolname = current_user",
            {"s": SCHEMA},
        ).fetchone()
    if row is None or row[0]:
        raise NoRole(f"role {role} is a superuser, which may touch the catalog too")
    if not row[1]:
        raise NoRole(f"role {role} may not use and make objects in the schema {SCHEMA}")
