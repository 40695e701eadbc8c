"""The one way to change anything: statements. Typed objects are written by PUT."""

from __future__ import annotations

import strawberry

from leatstream.rest.deps import seconds
from leatstream.rest.graphql.request import Info
from leatstream.rest.graphql.statements import (
    ContextInput,
    FileInput,
    StatementAnswer,
    answer_of,
    context_of,
)
from leatstream.services.statements import execution

_LONGEST_WAIT = 60.0


@strawberry.type(description="The one way to change anything: statements.")
class MutationRoot:
    """The one way to change anything: statements."""

    @strawberry.mutation(
        description="Run SQL. The first failure ends the run; what ran before it stands in the error's "
        "extension `results`."
    )
    def run_statements(
        self,
        info: Info,
        sql: str,
        context: ContextInput | None = None,
        files: list[FileInput] | None = None,
        atomic: bool = False,
        wait_timeout: str | None = None,
    ) -> StatementAnswer:
        """Run SQL.

        Args:
            info: of the request.
            sql: one or more statements.
            context: what unqualified names mean.
            files: that the SQL names with '@name'.
            atomic: keep the changes of all statements or of none.
            wait_timeout: how long to wait for a created query's job to run, such as 10s; at most 60 s.
        """
        wait = min(seconds(wait_timeout), _LONGEST_WAIT) if wait_timeout else 0.0
        contents = {file.name: file.content for file in files or ()}
        given = (sql, context_of(context), wait, contents)
        return answer_of(info.context.call(execution.execute, *given, atomic=atomic))
