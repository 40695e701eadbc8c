"""Applications."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from leatstream.model.objects import DesiredState, QueryState
from leatstream.rest.schemas.base import (
    OMIT,
    Comment,
    Name,
    ObjectView,
    OwnedBody,
    View,
    meta_fields,
    terraform,
)
from leatstream.rest.schemas.plans import ApplicationPlan
from leatstream.rest.schemas.queries import Sql
from leatstream.services.applications.catalog import ShownApplication
from leatstream.services.applications.making import ApplicationDefinition
from leatstream.services.environment import Context, Page

_EXAMPLE = """BEGIN APPLICATION demo
  CREATE STREAM views_of_b AS SELECT * FROM pageviews WHERE userid = 'b';
  CREATE CHANGELOG views_by_user AS SELECT userid, count(*) AS views FROM pageviews GROUP BY userid;
END APPLICATION"""


class ApplicationBody(OwnedBody):
    """An application: queries and streams that are made together, all or none, and go together."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_application",
            path="/v1/applications/{name}",
            key=["name"],
            path_attributes={"name": "Name of the application, exact; the same as in its text."},
            assume="applications",
            wait={
                "follow": "desired_state",
                "targets": {"running": ["running", "completed"], "stopped": ["stopped"]},
                "failed": ["failed"],
                "logs": "logs",
                "restart": "restart?only_failed=true",
            },
            timeouts=["create", "update", "delete"],
            change=True,
            omit=["plan"],
            attributes={
                "queries": {"infer": "plan.queries[].name"},
                "sinks": {"infer": "plan.queries[].plan.sink.fqn"},
                "relations": {"infer": "plan.relations"},
                "virtual_relations": {"infer": "plan.virtual_relations"},
                "status": {"volatile": True},
            },
            **{"import": "{name}"},
        )
        | {"examples": [{"sql": _EXAMPLE, "database": "demo", "schema": "public"}]}
    )

    sql: Sql = Field(
        description="`BEGIN APPLICATION name …; END APPLICATION`. White space, comments and a final "
        "semicolon make no difference. A change leaves the queries alone whose statements stay.",
        json_schema_extra=terraform(semantic="sql"),
    )
    database: Name | None = Field(None, description="Database of unqualified names.")
    schema_: Name | None = Field(None, alias="schema", description="Schema of unqualified names.")
    store: Name | None = Field(None, description="Store of the sinks, where the SQL names none.")
    desired_state: DesiredState = Field(DesiredState.RUNNING, description="Whether its queries should run.")
    comment: Comment = None

    def to_domain(self) -> ApplicationDefinition:
        """The definition for the services."""
        context = Context(self.database, self.schema_, self.store)
        return ApplicationDefinition(self.sql, context, self.desired_state, self.comment)


class MemberStatusView(View):
    """What one of its queries does now."""

    name: str = Field(description="Name of the query.")
    state: QueryState = Field(description="State of its job.")
    message: str | None = Field(None, description="More about the state.")


class ApplicationStatusView(View):
    """What an application's queries do now."""

    state: QueryState = Field(description="The worst state of its queries; `running` when all of them run.")
    message: str | None = Field(None, description="Which queries are in that state, and why.")
    hint: str | None = Field(None, description="What to do about it, for each of these queries.")
    has_run: bool = Field(description="Whether one of its queries has run: then there is state to lose.")
    observed_generation: int = Field(description="Generation that the jobs run.", json_schema_extra=OMIT)
    queries: list[MemberStatusView] = Field(description="Each of its queries.", json_schema_extra=OMIT)

    @classmethod
    def from_domain(cls, item: ShownApplication) -> ApplicationStatusView:
        """The status of an application."""
        members = [
            MemberStatusView(name=q.name, state=q.status.state, message=q.status.message)
            for q in item.queries
        ]
        state, generation = item.state, item.application.meta.generation
        messages = [f"{m.name}: {m.message}" for m in members if m.state is state and m.message]
        errors = [(q.name, q.status.error or {}) for q in item.queries if q.status.state is state]
        hints = [f"{name}: {error['hint']}" for name, error in errors if error.get("hint")]
        starting = state in (QueryState.PENDING, QueryState.STARTING)
        return cls(
            state=state,
            message="; ".join(messages) or None,
            hint="\n".join(hints) or None,
            has_run=any(not q.status.never_ran for q in item.queries),
            observed_generation=generation - 1 if starting else generation,
            queries=members,
        )


class ApplicationView(ObjectView):
    """An application: queries and streams that were made together and go together."""

    name: str = Field(description="Name of the application, exact.")
    sql: str = Field(description="BEGIN APPLICATION … END APPLICATION, as it was written.")
    database: str | None = Field(None, description="Database of unqualified names.")
    schema_: str | None = Field(None, alias="schema", description="Schema of unqualified names.")
    store: str | None = Field(None, description="Store of the sinks, where the SQL names none.")
    desired_state: DesiredState = Field(description="Whether its queries should run.")
    comment: Comment = None
    queries: list[str] = Field(description="Names of its queries, in the order of the text.")
    sinks: list[str] = Field(description="Full name of what each of the queries writes.")
    relations: list[str] = Field(description="Full names of the streams that it declared by columns.")
    virtual_relations: list[str] = Field(description="Names of its virtual relations.")
    plan: ApplicationPlan | None = Field(None, description="What its newest version did.")
    status: ApplicationStatusView = Field(description="What its queries do now.")

    @classmethod
    def from_domain(cls, item: ShownApplication) -> ApplicationView:
        """The answer for an application."""
        app = item.application
        return cls(
            **meta_fields(app.meta),
            name=app.name,
            sql=app.sql,
            database=app.context.get("database"),
            schema=app.context.get("schema"),
            store=app.context.get("store"),
            desired_state=app.desired_state,
            comment=app.comment,
            queries=list(app.queries),
            sinks=[query.sink for query in item.queries],
            relations=list(app.relations),
            virtual_relations=list(app.virtual),
            plan=ApplicationPlan.model_validate(app.plan) if app.plan else None,
            status=ApplicationStatusView.from_domain(item),
        )


class ApplicationList(View):
    """One page of applications."""

    items: list[ApplicationView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[ShownApplication]) -> ApplicationList:
        """The answer for a page."""
        items = [ApplicationView.from_domain(item) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)
