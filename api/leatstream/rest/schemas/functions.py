"""Function sources, and the functions made of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StrictBool, StrictInt

from leatstream.errors import Faults, sentence
from leatstream.model.functions import (
    DEFAULT_TIMEOUT_SECONDS,
    LONGEST_SOURCE,
    FunctionDefinition,
    FunctionSource,
    UserFunction,
)
from leatstream.model.objects import Column
from leatstream.model.types import DataType, parse_type
from leatstream.rest.schemas.base import (
    Body,
    Comment,
    Name,
    ObjectView,
    OwnedBody,
    View,
    Word,
    meta_fields,
    terraform,
)
from leatstream.services.environment import Page

_SOURCE: dict[str, Any] = {
    "file": "scores.py",
    "content": "def score(points):\n    return None if points is None else points * 2\n",
}
_FUNCTION: dict[str, Any] = {
    "arguments": [{"name": "points", "type": "BIGINT"}],
    "returns": "BIGINT",
    "source": "scores",
    "handler": "score",
}
SqlType = Annotated[str, Field(min_length=1, max_length=4000)]


class FunctionSourceBody(OwnedBody):
    """A function source: a file with functions, and their code."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_function_source",
            path="/v1/function-sources/{name}",
            key=["name"],
            path_attributes={"name": "Name of the function source, exact."},
            assume="function_sources",
            **{"import": "{name}"},
        )
        | {"examples": [_SOURCE]}
    )

    file: Word = Field(
        description="Name of the file; it ends in `.py`, or in `.jar`.", examples=["scores.py"]
    )
    content: Annotated[str, Field(min_length=1, max_length=LONGEST_SOURCE)] = Field(
        description='The text; of a jar its base64. At most 512 KiB. In Terraform `file("scores.py")`.'
    )
    comment: Comment = None
    restart_queries: StrictBool = Field(
        True,
        description="Whether running queries that call its functions are restarted, from their checkpoints, "
        "when the code changes. Otherwise they keep the old code until they are restarted.",
        json_schema_extra=terraform(provider_only=True),
    )


class FunctionSourceCreation(FunctionSourceBody):
    """A function source that must not exist yet."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "scores", **_SOURCE}]})

    name: Name = Field(description="Name of the function source, exact.")


class FunctionSourceView(ObjectView):
    """A function source."""

    name: str = Field(description="Name of the function source, exact.")
    file: str = Field(description="Name of the file.")
    content: str = Field(description="The text; of a jar its base64.")
    language: str = Field(description="`python` or `java`.")
    digest: str = Field(description="SHA-256 of the content.", json_schema_extra=terraform(volatile=True))
    comment: Comment = None

    @classmethod
    def from_domain(cls, item: FunctionSource) -> FunctionSourceView:
        """The answer for a source."""
        return cls(
            **meta_fields(item.meta),
            name=item.name,
            file=item.file,
            content=item.content,
            language=item.language,
            digest=item.digest,
            comment=item.comment,
        )


class FunctionSourceList(View):
    """One page of function sources."""

    items: list[FunctionSourceView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[FunctionSource]) -> FunctionSourceList:
        """The answer for a page."""
        items = [FunctionSourceView.from_domain(item) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)


class FunctionArgument(Body):
    """An argument of a function."""

    name: Name = Field(description="Name of the argument.")
    type: SqlType = Field(
        description="SQL type, such as `BIGINT`.", json_schema_extra=terraform(semantic="type")
    )


class FunctionBody(OwnedBody):
    """A function that SQL may call."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_function",
            path="/v1/functions/{name}",
            key=["name"],
            path_attributes={"name": "Name of the function, exact."},
            assume="functions",
            **{"import": "{name}"},
        )
        | {"examples": [_FUNCTION]}
    )

    arguments: Annotated[list[FunctionArgument], Field(max_length=32)] = Field(
        description="Arguments in order."
    )
    returns: SqlType = Field(
        description="SQL type of the result.",
        json_schema_extra=terraform(semantic="type"),
        examples=["BIGINT"],
    )
    source: Name = Field(description="Name of the function source.", examples=["scores"])
    handler: Word = Field(
        description="Function in the source, or class for an aggregate.", examples=["score"]
    )
    timeout_seconds: Annotated[StrictInt, Field(ge=1, le=3600)] = Field(
        DEFAULT_TIMEOUT_SECONDS, description="How long its calls in one partition of one batch may take."
    )
    comment: Comment = None

    def to_domain(self) -> FunctionDefinition:
        """The definition; RequestError for types that are none."""
        faults = Faults()
        arguments = tuple(
            Column(one.name, _type(one.type, f"#/arguments/{index}/type", faults))
            for index, one in enumerate(self.arguments)
        )
        returns = _type(self.returns, "#/returns", faults)
        faults.raise_if_any()
        return FunctionDefinition(
            arguments=arguments,
            returns=returns,
            source=self.source,
            handler=self.handler,
            timeout_seconds=self.timeout_seconds,
            comment=self.comment,
        )


class FunctionCreation(FunctionBody):
    """A function that must not exist yet."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "score", **_FUNCTION}]})

    name: Name = Field(description="Name of the function, exact.")


class FunctionArgumentView(View):
    """An argument of a function."""

    name: str = Field(description="Name of the argument.")
    type: str = Field(description="SQL type.", json_schema_extra=terraform(semantic="type"))


class FunctionView(ObjectView):
    """A function of a user."""

    name: str = Field(description="Name of the function, exact.")
    arguments: list[FunctionArgumentView] = Field(description="Arguments in order.")
    returns: str = Field(description="SQL type of the result.", json_schema_extra=terraform(semantic="type"))
    source: str = Field(description="Name of the function source.")
    handler: str = Field(description="Function in the source, or class for an aggregate.")
    aggregate: bool = Field(description="Whether it gives one value for many rows.")
    timeout_seconds: int = Field(description="How long its calls in one partition of one batch may take.")
    comment: Comment = None

    @classmethod
    def from_domain(cls, item: UserFunction) -> FunctionView:
        """The answer for a function."""
        return cls(
            **meta_fields(item.meta),
            name=item.name,
            arguments=[FunctionArgumentView(name=a.name, type=str(a.type)) for a in item.arguments],
            returns=str(item.returns),
            source=item.source,
            handler=item.handler,
            aggregate=item.aggregate,
            timeout_seconds=item.timeout_seconds,
            comment=item.comment,
        )


class FunctionList(View):
    """One page of users' functions."""

    items: list[FunctionView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[UserFunction]) -> FunctionList:
        """The answer for a page."""
        items = [FunctionView.from_domain(item) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)


def _type(text: str, pointer: str, faults: Faults) -> DataType:
    try:
        return parse_type(text)
    except ValueError as error:
        faults.add("validation", sentence(str(error)), pointer=pointer)
        return parse_type("VARCHAR")
