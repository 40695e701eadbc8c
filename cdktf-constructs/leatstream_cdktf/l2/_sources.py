"""What a statement reads: the relations that its text names in braces, and the schema of its other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from leatstream_cdktf import l1
from leatstream_cdktf._construct import describe
from leatstream_cdktf._sql import PLAIN_FQN, has_token, place_holders, split_name
from leatstream_cdktf.l2._names import DatabaseLike, SchemaLike, database_name, schema_names

#: What a query may read: a stream, changelog or table, another query's sink, or a relation's full name.
Source: TypeAlias = (
    "l1.Stream | l1.DataStream | l1.Changelog | l1.DataChangelog | l1.Table | l1.DataTable | l1.Query"
    " | l1.DataQuery | str"
)
Context: TypeAlias = tuple[str | None, str | None]


_RELATIONS = (l1.Stream, l1.DataStream, l1.Changelog, l1.DataChangelog, l1.Table, l1.DataTable)


def source_name(key: str, source: Source) -> str:
    """The full name of a relation that the SQL names in braces: a reference, when it is a construct.

    Raises:
        TypeError: it is something else.
        ValueError: it is no relation's name.
    """
    if isinstance(source, _RELATIONS):
        return source.fqn_attribute
    if isinstance(source, (l1.Query, l1.DataQuery)):
        return source.sink
    if not isinstance(source, str):
        raise TypeError(
            f"the source {key!r} is {describe(source)}; give a Stream, a Changelog, a Table, a Query "
            "or a relation's name"
        )
    if not has_token(source) and not PLAIN_FQN.match(source):
        raise ValueError(
            f"the source {key!r} is {source!r}, which is not a relation's name; write database.schema.name, "
            "with double quotes around a part that has capitals or other letters"
        )
    return source


def given_context(schema: SchemaLike | None, database: DatabaseLike | None) -> Context | None:
    """The names given; None when there are none."""
    if schema is None:
        return None if database is None else (database_name(database), None)
    return schema_names(schema, database)


def left_most_context(sql: str, sources: Mapping[str, Source]) -> Context:
    """The schema of the left-most relation in the text; nothing where only Terraform knows it."""
    source = next((sources[name] for name in place_holders(sql) if name in sources), None)
    known = getattr(source, "context", None)
    if isinstance(known, tuple):
        return known
    if isinstance(source, _RELATIONS):
        return source.database, source.schema
    if isinstance(source, str) and not has_token(source) and len(parts := split_name(source)) == 3:
        return parts[0], parts[1]
    return None, None
