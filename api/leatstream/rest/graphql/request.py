"""What resolvers are given: environment, caller, and how much one request may still read."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import strawberry
from starlette.types import Scope

from leatstream.errors import CatalogError, RequestError, sentence
from leatstream.model.names import Fqn
from leatstream.model.objects import Query, Relation
from leatstream.rest.deps import read_name
from leatstream.services.environment import Environment, Page, Principal
from leatstream.services.environment.pages import ANY, Only, every
from leatstream.services.queries import catalog as queries
from leatstream.services.relations import relations

T = TypeVar("T")
MOST_NODES = 10_000
SECONDS = 30.0
LARGEST_PAGE = 1000
MOST_NEWEST = 200


@dataclass(slots=True)
class Request:
    """One GraphQL request, or one WebSocket connection.

    Attributes:
        env: of the server; ``seen`` is the caller's view of it.
        scope: of the ASGI request.
        transport: ``post``, or ``stream`` for subscriptions.
        deadline: by ``time.monotonic``; no resolver starts after it.
        nodes: objects and calls of services so far.
        refusals: places in the document whose access was denied, and the role in use, for the audit log.
        connection_params: payload of ``connection_init`` of a WebSocket.
    """

    env: Environment
    scope: Scope
    transport: str = "post"
    deadline: float = field(default_factory=lambda: time.monotonic() + SECONDS)
    nodes: int = 0
    refusals: list[tuple[str, str]] = field(default_factory=list)
    connection_params: dict[str, Any] | None = None
    _queries: Sequence[Query] | None = None
    _touching: dict[str, list[Query]] | None = None
    _relations: dict[str, Relation | None] = field(default_factory=dict)

    @property
    def principal(self) -> Principal:
        """Who asks."""
        principal: Principal = self.scope["leatstream.principal"]
        return principal

    @property
    def seen(self) -> Environment:
        """The environment as the caller sees it."""
        return self.env.seen_by(self.principal)

    @property
    def id(self) -> str:
        """Of the request; also in the answer's ``X-Request-Id``."""
        return str(self.scope["leatstream.request_id"])

    def call(self, service: Callable[..., T], *given: Any, **named: Any) -> T:
        """What a service answers to the caller.

        Args:
            service: takes the environment and the principal first.
            *given: its further arguments.
            **named: those with a name.

        Raises:
            RequestError: too-complex, the request has read too much or takes too long.
        """
        self.spend(1)
        return service(self.seen, self.principal, *given, **named)

    def page(
        self,
        service: Callable[..., Page[T]],
        *given: Any,
        size: int,
        token: str | None,
        only: Only = ANY,
    ) -> Page[T]:
        """One page of a service's list.

        Args:
            service: takes the environment, the principal, ``given``, a page's size and its token.
            *given: its arguments before the size.
            size: the most items, 1 to 1000.
            token: of the page wanted; None = the first.
            only: what the list is narrowed to.

        Raises:
            RequestError: validation for a size out of bounds; too-complex as ``call``.
        """
        if not 1 <= size <= LARGEST_PAGE:
            raise RequestError("validation", f"A page has 1 to {LARGEST_PAGE} items, not {size}.")
        page = self.call(service, *given, size, token, only=only)
        self.spend(len(page.items))
        return page

    def newest(self, service: Callable[..., Sequence[T]], name: str, limit: int) -> Sequence[T]:
        """The newest items that a service has for a query.

        Args:
            service: takes the environment, the principal, the query's name and the limit.
            name: of the query.
            limit: 1 to 200.

        Raises:
            RequestError: validation for a limit out of bounds; too-complex as ``call``.
        """
        if not 1 <= limit <= MOST_NEWEST:
            raise RequestError("validation", f"The limit must be between 1 and {MOST_NEWEST}, not {limit}.")
        found = self.call(service, name, limit)
        self.spend(len(found))
        return found

    def all_queries(self) -> Sequence[Query]:
        """Every query that the caller sees, read once for each request."""
        if self._queries is None:
            self._queries = every(self.seen, self.principal, queries.list_queries)
            self.spend(len(self._queries))
        return self._queries

    def touching(self, fqn: str) -> Sequence[Query]:
        """The queries that read or write a relation, looked up once for all relations of a request."""
        if self._touching is None:
            self._touching = {}
            for query in self.all_queries():
                for name in {*query.sources, query.sink}:
                    self._touching.setdefault(name, []).append(query)
        found = self._touching.get(fqn, [])
        self.spend(len(found))
        return found

    def relation(self, fqn: str) -> Relation | None:
        """A relation, read once for each request; None if there is none that the caller sees."""
        if fqn not in self._relations:
            try:
                self._relations[fqn] = self.call(relations.get_relation, Fqn.parse(fqn))
            except CatalogError as error:
                if error.code != "not-found":
                    raise
                self._relations[fqn] = None
        self.spend(1)
        return self._relations[fqn]

    def spend(self, count: int) -> None:
        """Count what is read.

        Raises:
            RequestError: too-complex.
        """
        self.nodes += count
        if self.nodes > MOST_NODES:
            raise RequestError(
                "too-complex",
                f"The request reads more than {MOST_NODES} objects.",
                hint="Ask for smaller pages or fewer levels.",
            )
        if time.monotonic() > self.deadline:
            raise RequestError(
                "too-complex",
                f"The request takes longer than {SECONDS:.0f} seconds.",
                hint="Ask for smaller pages or fewer levels.",
            )


Info: TypeAlias = strawberry.Info[Request, None]


def named(text: str) -> str:
    """An argument as an exact name; RequestError validation if it is none."""
    try:
        return read_name(text)
    except ValueError as error:
        raise RequestError("validation", sentence(str(error))) from error
