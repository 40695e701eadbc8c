"""Whether a table, and the log's description of it, still give what the relation declares.

A table may be altered while a query reads it. A column that is renamed or dropped would be NULL in every row
from then on, and a value of another type could be read as another value, so the query fails instead.
"""

from __future__ import annotations

from leatstream.connectors.postgres.cdc_records import Form, Shaper
from leatstream.connectors.postgres.cdc_server import ChangeServer
from leatstream.connectors.postgres.cdc_table import SourceTable, get_table, native_types
from leatstream.connectors.postgres.pgoutput import RelationShape
from leatstream.connectors.postgres.types import readable
from leatstream.errors import StoreError

_BACK = (
    "Change the table back and start the query again, or drop the query and read the table by a relation "
    "that declares its columns as they are now."
)


def check_table(server: ChangeServer, form: Form, table: SourceTable) -> None:
    """See that the table has what the relation declares.

    Raises:
        StoreError: store-rejected, for the first column that it does not have, or not so.
    """
    there = {column.name: column.native for column in table.columns}
    for name, _ in form.images():
        if name not in there:
            raise _refused(
                server,
                f"has no column {name}, or it is generated now, which the log does not have: the relation "
                "declares it, and it would be NULL from now on",
            )
    _check_types(server, form, there)
    key = [column.name for column in table.key]
    if form.key and set(key) != set(form.key):
        told = f"({', '.join(key)})" if key else "none"
        raise _refused(server, f"has another primary key than ({', '.join(form.key)}) now: {told}")


def read_shape(
    server: ChangeServer, form: Form, table: SourceTable, shape: RelationShape
) -> tuple[Shaper, SourceTable]:
    """What makes records of the changes behind a description in the log.

    A column that the table has now, but did not have then, is looked up as a value that was not sent.

    Returns:
        It, and the table as it is now where that was asked for.

    Raises:
        StoreError: store-rejected, where the changes do not give what the relation declares.
    """
    flagged = {column.name for column in shape.columns if column.key}
    if form.key and shape.identity == "d" and flagged and flagged != set(form.key):
        raise _refused(server, f"has got another primary key: ({', '.join(sorted(flagged))})")
    if shape.identity == "i" and not {column.name for column in table.key} <= flagged:
        raise _refused(
            server,
            "logs the columns of an index instead of the primary key of rows that change (its replica "
            "identity), so rows that get another key would stay",
            f"ALTER TABLE {server.entity} REPLICA IDENTITY DEFAULT, and start the query from the beginning.",
        )
    kinds, names = dict(form.images()), {column.name for column in shape.columns}
    lacking = [name for name in kinds if name not in names]
    if lacking:
        table = get_table(server, beside=True)
        check_table(server, form, table)
    known = {(column.name, column.oid): column.native for column in table.columns}
    given = [column for column in shape.columns if column.name in kinds]
    found = {c.name: known[c.name, c.type] for c in given if (c.name, c.type) in known}
    others = [column for column in given if column.name not in found]
    if others:
        found |= zip((c.name for c in others), native_types(server, others), strict=True)
    _check_types(server, form, found)
    oids = {column.name: column.oid for column in table.columns}
    columns = [(column.name, column.type) for column in shape.columns]
    return Shaper(form, table, [*columns, *((n, oids[n]) for n in lacking)], lacking=len(lacking)), table


def _check_types(server: ChangeServer, form: Form, natives: dict[str, str]) -> None:
    for name, kind in form.images():
        native = natives.get(name)
        if native is not None and not readable(kind, native):
            raise _refused(
                server, f"has {native} in column {name} now, which cannot be read as the declared {kind}"
            )


def _refused(server: ChangeServer, why: str, hint: str = _BACK) -> StoreError:
    return StoreError("store-rejected", f"Store {server.store}: table {server.entity} {why}.", hint=hint)
