"""Applications: statements that are made together, all or none, and go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

from constructs import Construct

from leatstream_cdktf import l1
from leatstream_cdktf._construct import ResourceMeta
from leatstream_cdktf._sql import fill, has_token, quote_name, tidy
from leatstream_cdktf.l2._names import DatabaseLike, RoleLike, SchemaLike, StoreLike, owner_name, store_name
from leatstream_cdktf.l2._sources import Source, given_context, left_most_context, source_name


class Application(l1.Application):
    """Streams and queries that are made together, all or none, and go together.

    ::

        Application(
            self, "shop", schema=public, store=kafka, sources={"orders": orders, "audit": audit},
            statements=[
                "CREATE VIRTUAL STREAM virtual.public.large AS SELECT * FROM {orders} WHERE total > 100",
                "CREATE STREAM north AS SELECT id, total FROM virtual.public.large WHERE region = 'north'",
                "INSERT INTO {audit} SELECT id, total FROM virtual.public.large",
            ],
        )

    Names in braces become references, as in ``Query``. A change of one statement leaves the jobs of the
    others alone.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        statements: Sequence[str],
        sources: Mapping[str, Source] | None = None,
        schema: SchemaLike | None = None,
        database: DatabaseLike | None = None,
        store: StoreLike | None = None,
        name: str | None = None,
        desired_state: str | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        timeouts: l1.ApplicationTimeouts | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare an application.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            statements: CREATE STREAM, CREATE CHANGELOG, CREATE VIRTUAL STREAM and INSERT INTO … SELECT, in
                order. ``{name}`` stands for a relation of ``sources``.
            sources: the relations that the statements name in braces: constructs, or full names.
            schema: the schema of names that are left unqualified, as a construct, or by name together with
                ``database``. Left out, it is the schema of the first source.
            database: the database of a schema that is given by name.
            store: the store of sinks that name none.
            name: the application's exact name; ``id_`` when left out.
            desired_state: ``running`` (the default) or ``stopped``, for all of its queries.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            timeouts: how long Terraform waits, such as ``{"create": "5m"}``.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            TypeError: a source is of the wrong kind, or ``statements`` is one text.
            ValueError: the statements and the sources do not go together; the message says where and why.
        """
        sources = {} if sources is None else sources
        name = id_ if name is None else name
        try:
            text = _text(name, statements)
            sql = fill(text, {key: source_name(key, value) for key, value in sources.items()})
            context = given_context(schema, database) or left_most_context(text, sources)
        except (TypeError, ValueError) as fault:
            raise type(fault)(f"Application {id_!r}: {fault}") from None
        #: The database and schema of names that its statements leave unqualified.
        self.context = context
        super().__init__(
            scope,
            id_,
            name=name,
            sql=sql,
            database=context[0],
            schema=context[1],
            store=None if store is None else store_name(store),
            desired_state=desired_state,
            comment=comment,
            owner=owner_name(owner),
            timeouts=timeouts,
            **meta,
        )

    def sink(self, index: int) -> str:
        """The full name of what a query writes, counted from 0: a reference, for SQL that reads it."""
        return self.get_string_attribute(f"sinks[{index}]")


def _text(name: str, statements: Sequence[str]) -> str:
    """The whole text, with a statement's lines set in."""
    if isinstance(statements, str):
        raise TypeError("statements is one text; give a list, with one statement in each place")
    parts = [tidy(one).rstrip().rstrip(";").rstrip() for one in statements]
    if not parts or not all(parts):
        raise ValueError("statements is empty, or one of them is; write CREATE … or INSERT INTO … in each")
    # Double quotes are needed for a name that only Terraform knows, for it may be of any kind.
    quoted = f'"{name}"' if has_token(name) else quote_name(name)
    return "\n".join([f"BEGIN APPLICATION {quoted}", *map(_ended, parts), "END APPLICATION"])


def _ended(statement: str) -> str:
    """With its semicolon, on a line of its own where the last line may be a comment."""
    last = statement.rpartition("\n")[2]
    return f"{statement}\n;" if "--" in last else f"{statement};"
