"""What streams and changelogs share: their arguments, checked and in the provider's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from leatstream_cdktf.l1 import StreamColumn
from leatstream_cdktf.l2._columns import Columns, column_list
from leatstream_cdktf.l2._names import DatabaseLike, SchemaLike, StoreLike, schema_names, store_name


class Place(NamedTuple):
    """Where a relation stands, and its columns."""

    database: str
    schema: str
    store: str
    columns: list[StreamColumn]


def place(
    what: str, schema: SchemaLike, database: DatabaseLike | None, store: StoreLike, columns: Columns
) -> Place:
    """Read what names a relation's surroundings.

    Args:
        what: the construct, such as ``Stream 'pageviews'``, for errors.
        schema: the schema, as a construct, or by name together with ``database``.
        database: the database of a schema that is given by name.
        store: the store, as a construct or by name.
        columns: the columns.

    Raises:
        TypeError: an argument is of the wrong kind.
        ValueError: the arguments do not go together; the message names all that is wrong with the columns.
    """
    try:
        names = schema_names(schema, database)
        listed = column_list(columns)
        return Place(*names, store_name(store), listed)
    except (TypeError, ValueError) as fault:
        raise type(fault)(f"{what}: {fault}") from None


def text_properties(properties: Mapping[str, str | int | bool] | None) -> dict[str, str] | None:
    """Property values as the text that Terraform's map of strings holds."""
    if properties is None:
        return None
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in properties.items()
    }
