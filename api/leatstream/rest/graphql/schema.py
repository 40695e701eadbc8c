"""The schema, its limits, and its text: ``python -m leatstream.rest.graphql.schema FILE`` writes it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import strawberry
from strawberry.extensions import MaxAliasesLimiter, MaxTokensLimiter, QueryDepthLimiter
from strawberry.schema.config import StrawberryConfig
from strawberry.types.graphql import OperationType

from leatstream.rest.graphql.errors import NameTheOperation, ShowErrors
from leatstream.rest.graphql.mutation import MutationRoot
from leatstream.rest.graphql.query import QueryRoot
from leatstream.rest.graphql.subscription import SubscriptionRoot
from leatstream.rest.graphql.values import LONG, Long

_STREAMED = (OperationType.SUBSCRIPTION,)
DEPTH, ALIASES, TOKENS = 8, 15, 2_000


class Schema(strawberry.Schema):
    """Logs nothing by itself: ``errors.py`` says which errors the log gets."""

    def process_errors(self, errors: list[Any], execution_context: Any = None) -> None:
        """Leave them to those who answer."""

    async def stream(self, *given: Any, **named: Any) -> Any:
        """Run a subscription, and nothing else: resolvers of queries would stop the event loop."""
        return await super().stream(*given, **{**named, "allowed_operation_types": _STREAMED})


def make_schema() -> Schema:
    """The schema, whose extensions are made for each request."""
    return Schema(
        query=QueryRoot,
        mutation=MutationRoot,
        subscription=SubscriptionRoot,
        config=StrawberryConfig(scalar_map={Long: LONG}),
        extensions=[
            lambda: QueryDepthLimiter(max_depth=DEPTH),
            lambda: MaxAliasesLimiter(max_alias_count=ALIASES),
            lambda: MaxTokensLimiter(max_token_count=TOKENS),
            NameTheOperation,
            ShowErrors,
        ],
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(make_schema().as_str() + "\n", encoding="utf-8")
