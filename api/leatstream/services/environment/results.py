"""What a statement gives, and what the statements of one request share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leatstream.model.objects import Store
from leatstream.services.environment import Context, Environment, Principal, Stored
from leatstream.sql import statements as ast
from leatstream.views.faults import MOST_ANSWERED, too_long


@dataclass(frozen=True, slots=True)
class StatementResult:
    """What one statement did.

    Attributes:
        kind: such as ``create_stream``.
        status: ``succeeded``, or ``running`` while a job is starting.
        object: ``{noun, name}`` of the object it is about; of a store also whether it answers.
        query: name of the query it made.
        columns: ``[{name, type}]`` of ``rows``.
        rows: a table of strings and NULLs; of a SELECT on views, of JSON values; of one on streams the path
            where its rows come.
        freshness: of each materialized view that a SELECT has read.
        truncated: whether a SELECT on views has more rows.
    """

    kind: str
    status: str = "succeeded"
    object: Mapping[str, Any] | None = None
    query: str | None = None
    columns: list[dict[str, str]] | None = None
    rows: list[list[Any]] | str | None = None
    freshness: list[dict[str, Any]] | None = None
    truncated: bool | None = None

    def as_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {f: getattr(self, f) for f in self.__dataclass_fields__}


def about_store(name: str, stored: Stored[Store] | None) -> dict[str, Any]:
    """The object of a result about a store: with how it answered, where it has just been asked."""
    thing = {"noun": "store", "name": name}
    if stored is None:
        return thing
    message = stored.item.message
    return {**thing, "state": stored.item.state.value, **({"message": message} if message else {})}


@dataclass(slots=True)
class Run:
    """State of one request.

    Attributes:
        files: those sent along, by name, in base64.
        caller: the principal as it signed in, where USE ROLE may have changed its role since.
        length: of all values in the results' tables, in characters.
    """

    env: Environment
    principal: Principal
    context: Context
    deadline: float
    results: list[StatementResult] = field(default_factory=list)
    files: Mapping[str, str] = field(default_factory=dict)
    caller: Principal | None = None
    length: int = 0

    def keep(self, result: StatementResult) -> None:
        """The result of one statement more.

        Raises:
            RequestError: all tables of the request are too long together; the server would hold them all.
        """
        if isinstance(result.rows, list):
            length = sum(len(str(value)) for row in result.rows for value in row)
            # Who makes a table bounds it by itself.
            if self.length and self.length + length > MOST_ANSWERED:
                raise too_long("send the statements apart, or ask for fewer rows")
            self.length += length
        self.results.append(result)


def kind_of(statement: ast.Statement) -> str:
    """``CreateStreamAs`` gives ``create_stream_as``."""
    name = type(statement).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
