"""Applications."""

from __future__ import annotations

from pydantic import Field

from leatstream.model.registered import Application
from leatstream.rest.schemas.base import ObjectView, View, meta_fields
from leatstream.services.environment import Page


class ApplicationView(ObjectView):
    """An application: queries and streams that were made together and go together."""

    name: str = Field(description="Name of the application, exact.")
    sql: str = Field(description="BEGIN APPLICATION … END APPLICATION, as it was written.")
    queries: list[str] = Field(description="Names of its queries, in the order they were made.")
    relations: list[str] = Field(description="Full names of the streams that it declared by columns.")
    virtual_relations: list[str] = Field(description="Names of its virtual relations.")

    @classmethod
    def from_domain(cls, item: Application) -> ApplicationView:
        """The answer for an application."""
        return cls(
            **meta_fields(item.meta),
            name=item.name,
            sql=item.sql,
            queries=list(item.queries),
            relations=list(item.relations),
            virtual_relations=list(item.virtual),
        )


class ApplicationList(View):
    """One page of applications."""

    items: list[ApplicationView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Application]) -> ApplicationList:
        """The answer for a page."""
        items = [ApplicationView.from_domain(item) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)
