"""Statements: SQL text in, results or a verdict out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from leatstream.model.functions import LONGEST_SOURCE
from leatstream.model.names import Fqn
from leatstream.rest.schemas.base import Body, EffectiveView, FaultView, Name, Properties, View, Word
from leatstream.rest.schemas.entities import EntityKinds
from leatstream.rest.schemas.functions import FunctionArgument, SqlType
from leatstream.rest.schemas.plans import ApplicationPlan, Plan, PlanColumn, PlanSource
from leatstream.rest.schemas.queries import Sql
from leatstream.rest.schemas.relations import ColumnBody
from leatstream.rest.schemas.stores import StoreKinds
from leatstream.services.environment import Context

_FileName = Annotated[str, Field(min_length=1, max_length=1000)]
_FileContent = Annotated[str, Field(max_length=950_000, pattern=r"^[A-Za-z0-9+/]*={0,2}$")]
_DURATION = r"^[0-9]{1,6}(ms|s|m)?$"


class _ContextBody(Body):
    database: Name | None = Field(None, description="Database of unqualified names.")
    schema_: Name | None = Field(None, alias="schema", description="Schema of unqualified names.")
    store: Name | None = Field(None, description="Store, where the SQL names none.")
    role: Name | None = Field(None, description="Role to act in; left out = the token's.")


class StatementBody(_ContextBody):
    """SQL to run: one or more statements."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"sql": "CREATE DATABASE demo; USE DATABASE demo;", "wait_timeout": "10s"}]
        }
    )

    sql: Sql = Field(description="Statements, separated by semicolons.")
    atomic: StrictBool = Field(
        False,
        description="Keep the changes of all statements or of none. A statement with an effect outside the "
        "catalog, such as a new topic, is refused then.",
    )
    files: Annotated[dict[_FileName, _FileContent] | None, Field(max_length=20)] = Field(
        None, description="Files that the SQL names with '@name', by name, in base64."
    )
    wait_timeout: Annotated[str, Field(pattern=_DURATION)] | None = Field(
        None,
        description="How long to wait for the job of a created query to run, such as `10s`; at most 60 s.",
    )

    def context(self) -> Context:
        """What unqualified names mean."""
        return Context(self.database, self.schema_, self.store, self.role)


class FreshnessView(View):
    """As of which batch a materialized view was read."""

    view: str = Field(description="Full name of the view.")
    batch_id: int | None = Field(None, description="Number of its newest batch; null before the first.")
    batch_time: str | None = Field(None, description="When that was applied.")
    watermark: str | None = Field(
        None, description="Event time up to which its windows are closed, where it has windows or joins."
    )


class StatementResultView(View):
    """What one statement did."""

    kind: str = Field(description="Such as create_stream.")
    status: Literal["succeeded", "running"] = Field(
        description="running while a job is starting, or rows come."
    )
    object: dict[str, Any] | None = Field(
        None, description="Noun and name of the object it is about; effective, of a relation in DESCRIBE."
    )
    query: str | None = Field(None, description="Name of the query it made.")
    columns: list[dict[str, Any]] | None = Field(None, description="Name and type of each column of rows.")
    rows: list[list[Any]] | str | None = Field(
        None, description="A table; of a SELECT on streams, the path where its rows come."
    )
    freshness: list[FreshnessView] | None = Field(
        None, description="Of each materialized view that a SELECT has read."
    )
    truncated: bool | None = Field(None, description="Whether a SELECT over views has more rows than these.")


class RowView(View):
    """A row of a SELECT."""

    op: Literal["+I", "+U", "-D"] = Field(
        description="+I: a row; +U: a group, in place of what was returned for its key before; -D: a group "
        "that is gone, only its key is returned."
    )
    row: dict[str, Any] = Field(description="Value by column, as a query would write it to a topic.")


class ContextView(View):
    """What unqualified names mean now; send it with the next statement."""

    database: str | None = None
    schema_: str | None = Field(None, alias="schema")
    store: str | None = None
    role: str | None = None


class StatementAnswer(View):
    """Results of the statements, in order, and the context after them."""

    results: list[StatementResultView]
    context: ContextView


class _Assumed(BaseModel):
    """An object that is planned; what is not known yet is left out."""

    model_config = ConfigDict(extra="ignore")


class AssumedDatabase(_Assumed):
    """A planned database."""

    name: Name


class AssumedSchema(_Assumed):
    """A planned schema."""

    database: Name
    name: Name


class AssumedStore(StoreKinds, _Assumed):
    """A planned store. Without an object of its kind nothing is known of it but its name."""

    name: Name
    schema_registry: Name | None = None


class AssumedRegistry(_Assumed):
    """A planned schema registry."""

    name: Name
    type: Word | None = None
    uris: Annotated[str, Field(max_length=2000)] | None = None
    username: Annotated[str, Field(max_length=1000)] | None = None
    password: Annotated[str, Field(max_length=1000)] | None = Field(
        None, json_schema_extra={"writeOnly": True}
    )
    password_secret: Name | None = None
    ca_certificate: Annotated[str, Field(max_length=200_000)] | None = None


class AssumedDescriptorSource(_Assumed):
    """A planned descriptor source."""

    name: Name
    descriptor_set: Annotated[str, Field(max_length=950_000)] | None = None


class AssumedEntity(EntityKinds, _Assumed):
    """A planned entity."""

    store: Name
    name: Name


class AssumedRelation(_Assumed):
    """A planned relation: its body and its names, as three members or as ``fqn``."""

    database: Name | None = None
    schema_: Name | None = Field(None, alias="schema")
    name: Name | None = None
    fqn: Annotated[str, Field(min_length=5, max_length=800)] | None = None
    kind: Literal["stream", "changelog", "table"] | None = None
    primary_key: Annotated[list[Name], Field(max_length=2000)] | None = None
    columns: Annotated[list[ColumnBody], Field(max_length=2000)] | None = None
    store: Name | None = None
    topic: Name | None = None
    value_format: Name | None = None
    key_format: Name | None = None
    key_type: Name | None = None
    timestamp: Name | None = None
    timestamp_format: Name | None = None
    properties: dict[str, str] | None = Field(None, max_length=100)

    def with_names(self) -> dict[str, Any]:
        """The members that are set, the names as three members.

        Raises:
            ValueError: the names are missing.
        """
        body = self.model_dump(exclude_none=True, by_alias=True)
        fqn = body.pop("fqn", None)
        if fqn is not None:
            parsed = Fqn.parse(fqn)
            body |= {"database": parsed.database, "schema": parsed.schema, "name": parsed.name}
        return body


class AssumedQuery(_Assumed):
    """A planned query, whose sink others may read."""

    name: Name
    sql: Sql
    database: Name | None = None
    schema_: Name | None = Field(None, alias="schema")
    store: Name | None = None


class AssumedApplication(_Assumed):
    """A planned application, whose streams others may read."""

    name: Name
    sql: Sql
    database: Name | None = None
    schema_: Name | None = Field(None, alias="schema")
    store: Name | None = None


class AssumedFunctionSource(_Assumed):
    """A planned function source."""

    name: Name
    file: Name | None = None
    content: str | None = Field(None, max_length=LONGEST_SOURCE)


class AssumedFunction(_Assumed):
    """A planned function."""

    name: Name
    arguments: Annotated[list[FunctionArgument], Field(max_length=32)] | None = None
    returns: SqlType | None = None
    source: Name | None = None
    handler: Name | None = None
    timeout_seconds: Annotated[StrictInt, Field(ge=1, le=3600)] | None = None


class Assume(Body):
    """Objects that count as existing, because the same plan makes them."""

    databases: Annotated[list[AssumedDatabase], Field(max_length=1000)] | None = None
    schemas: Annotated[list[AssumedSchema], Field(max_length=1000)] | None = None
    stores: Annotated[list[AssumedStore], Field(max_length=1000)] | None = None
    schema_registries: Annotated[list[AssumedRegistry], Field(max_length=1000)] | None = None
    descriptor_sources: Annotated[list[AssumedDescriptorSource], Field(max_length=100)] | None = None
    entities: Annotated[list[AssumedEntity], Field(max_length=1000)] | None = None
    relations: Annotated[list[AssumedRelation], Field(max_length=1000)] | None = None
    queries: Annotated[list[AssumedQuery], Field(max_length=1000)] | None = None
    applications: Annotated[list[AssumedApplication], Field(max_length=100)] | None = None
    function_sources: Annotated[list[AssumedFunctionSource], Field(max_length=1000)] | None = None
    functions: Annotated[list[AssumedFunction], Field(max_length=1000)] | None = None

    def to_domain(self) -> dict[str, Any]:
        """The mapping that the services read.

        Raises:
            ValueError: a relation has no names.
        """
        found = self.model_dump(exclude_none=True, by_alias=True)
        if self.relations is not None:
            found["relations"] = [one.with_names() for one in self.relations]
        return found


class ValidationBody(_ContextBody):
    """SQL to check; nothing is changed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "sql": "CREATE STREAM views_of_b AS SELECT * FROM pageviews WHERE userid = 'b'",
                    "database": "demo",
                    "schema": "public",
                }
            ]
        }
    )

    sql: Sql = Field(description="Statements, separated by semicolons.")
    name: Name | None = Field(
        None, description="Query or application that the text would replace; the plan shows the change."
    )
    properties: Properties = Field(None, description="Properties of the query, as its body gives them.")
    assume: Assume | None = Field(None, description="Objects that count as existing.")

    def context(self) -> Context:
        """What unqualified names mean."""
        return Context(self.database, self.schema_, self.store, self.role)


class StreamPlan(View):
    """What CREATE STREAM, CHANGELOG or TABLE would make."""

    fqn: str = Field(description="Full name.")
    columns: list[PlanColumn] = Field(
        default_factory=list, description="Columns, in order: those written, or the schema registry's."
    )
    primary_key: list[str] | None = Field(
        None, description="Of a table: columns by which written rows replace each other."
    )
    properties: dict[str, EffectiveView] = Field(
        description="Every property in force, with where it came from."
    )


class SelectPlan(View):
    """What a SELECT of its own would read and show."""

    sources: list[PlanSource] = Field(description="Relations read, in the order of the SQL.")
    columns: list[PlanColumn] = Field(description="Columns, in order.")
    changelog: bool = Field(description="Whether a row may replace or take back one before it.")


class ProblemView(FaultView):
    """One thing that is wrong with a statement."""

    fqn: str | None = Field(None, description="The relation that is missing.")


class ValidatedStatement(View):
    """The verdict on one statement."""

    kind: str = Field(description="Such as create_stream_as; unknown if the text cannot be read.")
    plan: Plan | StreamPlan | SelectPlan | ApplicationPlan | None = Field(
        None, description="What it would do, where there is more to say."
    )
    problems: list[ProblemView] = Field(description="Everything that is wrong with it.")


class ValidationAnswer(View):
    """The verdict on a text."""

    valid: bool
    statements: list[ValidatedStatement]
    canonical: str = Field(
        description="The text without comments, in one spelling. Secrets stand as `***`; it is empty for a "
        "text that cannot be read."
    )
    hash: str = Field(description="Equal for texts of the same meaning.")
