"""What can be followed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, closing
from datetime import datetime
from functools import partial
from typing import Annotated, Any, TypeVar

import strawberry

from leatstream.errors import CatalogAway, CatalogError, RequestError
from leatstream.model.bounds import LOG_LINES
from leatstream.model.log_tails import unseen
from leatstream.rest.deps import read_entity
from leatstream.rest.graphql.records import MOST, Record, Start, record_of, records_wanted, within
from leatstream.rest.graphql.request import Info, Request, named
from leatstream.rest.graphql.statements import ContextInput, context_of
from leatstream.rest.graphql.status import QueryStatus, status_of
from leatstream.rest.graphql.streaming import in_thread, opened, steps
from leatstream.rest.graphql.values import JSON, Long, raw_json
from leatstream.services.environment import Context
from leatstream.services.environment.selections import Row as SelectedRow
from leatstream.services.queries import catalog as queries
from leatstream.services.relations import entities
from leatstream.services.selects import interactive
from leatstream.services.statements import execution
from leatstream.sql.parser import parse
from leatstream.sql.statements import Select

T = TypeVar("T")
_PAUSE = 0.5  # seconds; a job reports its lines once a second
_LOOK_AGAIN = 1.0  # seconds; a change by another process wakes nobody here


@strawberry.type(description="A row of a SELECT.")
class Row:
    """A row of a SELECT."""

    op: str = strawberry.field(
        description="+I: a row; +U: a group, in place of the one of its key; -D: a group that is gone."
    )
    row: JSON = strawberry.field(description="Value by column.")


@strawberry.type(description="What can be followed, over graphql-transport-ws or as server-sent events.")
class SubscriptionRoot:
    """What can be followed."""

    @strawberry.subscription(description="Rows of one SELECT as they come; it ends with its reader.")
    async def rows(
        self, info: Info, sql: str, context: ContextInput | None = None, limit: int | None = None
    ) -> AsyncGenerator[Row]:
        """Rows of one SELECT as they come.

        Args:
            info: of the request.
            sql: one SELECT.
            context: what unqualified names mean.
            limit: end after so many rows.
        """
        request = info.context
        async with opened(request) as watch:
            begin = partial(_selected, request, sql, context_of(context), _limit(limit))
            async with aclosing(steps(begin, watch)) as found:
                async for row in found:
                    if row is not None:
                        yield row

    @strawberry.subscription(description="Records of an entity as they come, from the store.")
    async def records(
        self,
        info: Info,
        store: str,
        entity: str,
        from_: Annotated[Start, strawberry.argument(name="from")] = Start.LATEST,
        since: Annotated[
            datetime | None,
            strawberry.argument(description="Begin with records of this time; without a zone it is UTC."),
        ] = None,
        partition: Annotated[
            str | None, strawberry.argument(description="Only this partition or shard.")
        ] = None,
        offset: Annotated[
            Long | None, strawberry.argument(description="Begin at this offset of the partition.")
        ] = None,
        q: Annotated[
            str | None, strawberry.argument(description="A part of the key or value, in any case.")
        ] = None,
        rate: Annotated[int | None, strawberry.argument(description="The most records a second.")] = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Record]:
        """Records of an entity as they come.

        Args:
            info: of the request.
            store: name of the store.
            entity: name of the entity, exact.
            from_: where to begin.
            since: the first time wanted, in place of ``from_``.
            partition: the only one wanted.
            offset: the first one of that partition.
            q: a part of key or value, in any case.
            rate: the most records a second.
            limit: end after so many records.
        """
        request = info.context
        async with opened(request) as watch:
            wanted = records_wanted(from_, since, partition, offset, q, rate, limit)
            place = (named(store), read_entity(entity), wanted)
            read = partial(entities.read_records, request.seen, request.principal, *place)
            async with aclosing(steps(read, watch)) as found:
                async for record in found:
                    if record is not None:
                        yield record_of(record)

    @strawberry.subscription(description="The status of a query at each change, until it is deleted.")
    async def query_status(self, info: Info, name: str) -> AsyncGenerator[QueryStatus]:
        """The status of a query at each change, until it is deleted."""
        request, query = info.context, named(name)
        async with opened(request) as watch:
            shown: QueryStatus | None = None
            while True:
                # Read the counter before the query: a change in between then wakes the wait at once.
                seen = request.env.changed.value
                look = partial(queries.get_query, request.seen, request.principal, query)
                await watch.look()
                found = await _present(look, known=shown is not None)
                if found is None:
                    return
                if found is not _AWAY and (status := status_of(found)) != shown:
                    shown = status
                    yield status
                await request.env.changed.wait_async(seen, _LOOK_AGAIN)

    @strawberry.subscription(description="Log lines of a query's job as they come, until it is deleted.")
    async def logs(self, info: Info, query: str, tail: int = 50) -> AsyncGenerator[str]:
        """Log lines of a query's job as they come, the last ones first.

        Args:
            info: of the request.
            query: its name.
            tail: how many of the existing lines.
        """
        if not 0 <= tail <= LOG_LINES:
            raise RequestError("validation", f"The tail has 0 to {LOG_LINES} lines, not {tail}.")
        request, name = info.context, named(query)
        async with opened(request) as watch:
            seen: Sequence[str] | None = None
            while True:
                look = partial(queries.query_logs, request.seen, request.principal, name, LOG_LINES)
                await watch.look()
                now = await _present(look, known=seen is not None)
                if now is None:
                    return
                if now is not _AWAY:
                    fresh = now[len(now) - min(tail, len(now)) :] if seen is None else unseen(seen, now)
                    seen = now
                    for line in fresh:
                        yield line
                await asyncio.sleep(_PAUSE)


_AWAY: Any = object()


async def _present(look: Callable[[], T], *, known: bool) -> T | None:
    """What a look gives; None when the query is deleted, ``_AWAY`` while the catalog cannot be reached."""
    try:
        return await in_thread(look)
    except CatalogError:
        if not known:
            raise
        return None
    except CatalogAway:  # it will come back, and the reader need not notice
        if not known:
            raise
        gone: T = _AWAY
        return gone


def _limit(limit: int | None) -> int | None:
    within("limit", limit, 1, MOST)
    return limit


def _selected(request: Request, sql: str, context: Context, limit: int | None) -> Iterator[Row | None]:
    """The rows of a SELECT, None about once a second while there is none."""
    statements = parse(sql)
    if len(statements) != 1 or not isinstance(statements[0], Select):
        hint = "Run other statements by the mutation runStatements."
        raise RequestError("unsupported", "The subscription rows takes one SELECT.", hint=hint)
    env, who = request.seen, request.principal
    (result,) = execution.execute(env, who, sql, context).results
    if not isinstance(result.rows, str):
        names = [column["name"] for column in result.columns or ()]
        for values in (result.rows or [])[:limit]:
            yield Row(op="+I", row=JSON(dict(zip(names, values, strict=True))))
        return
    selection = result.rows.split("/")[-2]  # /v1/statements/<id>/rows
    with closing(interactive.read_rows(env, who, selection, interactive.Limits(rows=limit))) as rows:  # type: ignore[type-var]
        for item in rows:
            yield Row(op=item.op, row=raw_json(item.text)) if isinstance(item, SelectedRow) else None
