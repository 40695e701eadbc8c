"""What a schema registry holds: subjects, versions and their schemas."""

from __future__ import annotations

from pydantic import Field

from leatstream.formats.registry_client import Version
from leatstream.rest.schemas.base import View
from leatstream.services.environment import Page
from leatstream.services.nouns.registry_subjects import Subject


class SubjectView(View):
    """A subject."""

    name: str = Field(description="Its name in the registry, exact.")


class SubjectList(View):
    """One page of subjects."""

    items: list[SubjectView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Subject]) -> SubjectList:
        """The answer for a page."""
        items = [SubjectView(name=one.name) for one in page.items]
        return cls(items=items, next_page_token=page.next_page_token)


class SubjectVersionView(View):
    """A version of a subject, without its schema."""

    version: int


class SubjectVersionList(View):
    """One page of a subject's versions."""

    items: list[SubjectVersionView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[int]) -> SubjectVersionList:
        """The answer for a page."""
        items = [SubjectVersionView(version=number) for number in page.items]
        return cls(items=items, next_page_token=page.next_page_token)


class SchemaReference(View):
    """Another schema that a schema uses."""

    name: str = Field(description="What the schema calls it.")
    subject: str
    version: int


class RegisteredSchemaView(View):
    """A version of a subject, with its schema."""

    subject: str = Field(description="Its name in the registry, exact.")
    version: int
    id: int | None = Field(None, description="The registry's number of the schema, which records name.")
    type: str = Field(description="AVRO, PROTOBUF or JSON.")
    text: str = Field(description="The schema, in the language of its type.")
    references: list[SchemaReference] = Field(description="Other schemas that it uses.")

    @classmethod
    def from_domain(cls, item: Version) -> RegisteredSchemaView:
        """The answer for a version."""
        references = [SchemaReference(name=n, subject=s, version=v) for n, s, v in item.references]
        return cls(
            subject=item.subject,
            version=item.version,
            id=item.id,
            type=item.type,
            text=item.text,
            references=references,
        )
