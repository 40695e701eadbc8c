"""Savepoints."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from leatstream.model.registered import Savepoint, SavepointState
from leatstream.rest.schemas.base import Body, Name, ObjectView, View, meta_fields
from leatstream.services.environment import Page


class SavepointBody(Body):
    """A savepoint of a query, which is stopped for it."""

    name: Name = Field(description="Name of the savepoint.")


class SavepointView(ObjectView):
    """A copy of a query's checkpoint that new queries can begin with."""

    name: str = Field(description="Name of the savepoint, exact.")
    query: str = Field(description="The query that it was taken of; it may be gone.")
    query_generation: int = Field(description="Version of the query.")
    sql: str = Field(description="The query's statement.")
    state: SavepointState = Field(
        description="pending until the job has stopped, then ready or failed; deleting until it is gone."
    )
    message: str | None = Field(None, description="Why it failed.")
    batch: int | None = Field(None, description="The last batch that is in it.")
    offsets: dict[str, Any] = Field(description="Where this batch ended, by relation.")
    state_digests: dict[str, str] = Field(description="Digests of what the state is made of; none: no state.")

    @classmethod
    def from_domain(cls, item: Savepoint) -> SavepointView:
        """The answer for a savepoint."""
        return cls(
            **meta_fields(item.meta),
            name=item.name,
            query=item.query,
            query_generation=item.query_generation,
            sql=item.sql,
            state=item.state,
            message=item.message,
            batch=item.batch,
            offsets=dict(item.offsets),
            state_digests=dict(item.job.get("state") or {}),
        )


class SavepointList(View):
    """One page of savepoints."""

    items: list[SavepointView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Savepoint]) -> SavepointList:
        """The answer for a page."""
        items = [SavepointView.from_domain(item) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)
