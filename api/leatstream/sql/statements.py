"""The statements of the language, as the parser gives them: names folded, values typed, positions kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from leatstream.errors import Position

if TYPE_CHECKING:
    from sqlglot import exp

    from leatstream.sql.constants import Constant


@dataclass(frozen=True, slots=True)
class Name:
    """A dotted name: its parts (folded unless quoted) and where it stands."""

    parts: tuple[str, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """GROUPING SETS, ROLLUP or CUBE of a GROUP BY.

    Attributes:
        kind: these words.
        sets: its members; each names keys by their place in GROUP BY.
    """

    kind: str
    sets: tuple[tuple[int, ...], ...]
    position: Position

    @property
    def count(self) -> int:
        """How many sets of columns it makes."""
        if self.kind == "CUBE":
            return int(2 ** len(self.sets))
        return len(self.sets) + (self.kind == "ROLLUP")


@dataclass(frozen=True, slots=True)
class Value:
    """A WITH value. ``kind`` says how it was written: 'x', 3, TRUE or a bare word, "identifier".

    One that a request's body gives beside the text has a ``pointer`` there, and the statement's position.
    """

    value: str | int | float | bool
    kind: Literal["string", "number", "keyword", "identifier"]
    position: Position
    key_position: Position | None = None
    pointer: str | None = None

    @property
    def place(self) -> dict[str, Any]:
        """``pointer`` or ``position``, as keywords for a fault."""
        return {"position": self.position} if self.pointer is None else {"pointer": self.pointer}


Properties = Mapping[str, Value]  # keys lower case, as written; their aliases are resolved later


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """``name TYPE [NOT NULL] [COMMENT 'text']``; the type is text, read by ``model.types.parse_type``."""

    name: str
    type: str
    not_null: bool
    position: Position
    type_position: Position
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Base: ``text`` is the statement's own part of the source, verbatim, without the semicolon."""

    text: str
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase(Statement):
    """CREATE [OR REPLACE] DATABASE [IF NOT EXISTS] name [COMMENT 'text']"""

    name: Name
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchema(Statement):
    """CREATE [OR REPLACE] SCHEMA [IF NOT EXISTS] [db.]name [IN DATABASE db] [COMMENT 'text']"""

    name: Name
    database: Name | None = None
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStore(Statement):
    """CREATE [OR REPLACE] STORE [IF NOT EXISTS] name [COMMENT 'text'] WITH (…)"""

    name: Name
    properties: Properties
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRegistered(Statement):
    """CREATE [OR REPLACE] noun [IF NOT EXISTS] name [COMMENT 'text'] WITH (…)"""

    name: Name
    properties: Properties
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSecret(CreateRegistered):
    """CREATE SECRET"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchemaRegistry(CreateRegistered):
    """CREATE SCHEMA_REGISTRY"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDescriptorSource(CreateRegistered):
    """CREATE DESCRIPTOR_SOURCE"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateEntity(Statement):
    """CREATE ENTITY|TOPIC [IF NOT EXISTS] path [IN STORE s] [WITH (…)]"""

    name: Name
    store: Name | None = None
    properties: Properties = field(default_factory=dict)
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStream(Statement):
    """CREATE [OR REPLACE] STREAM [IF NOT EXISTS] name (columns) [COMMENT 'text'] WITH (…)"""

    name: Name
    columns: tuple[ColumnDefinition, ...]
    properties: Properties
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateChangelog(CreateStream):
    """CREATE [OR REPLACE] CHANGELOG [IF NOT EXISTS] name (columns, PRIMARY KEY (…)) [COMMENT …] WITH (…)"""

    primary_key: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable(CreateStream):
    """CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name [(columns [, PRIMARY KEY (…)])] [COMMENT …] WITH (…)

    No columns: those of the store's table, and its primary key.
    """

    primary_key: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAs(Statement):
    """CREATE [OR REPLACE] kind [IF NOT EXISTS] name [COMMENT '…'] [WITH …] AS select [QUERY WITH …]"""

    name: Name
    properties: Properties
    select: exp.Expression
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None
    query_properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStreamAs(CreateAs):
    """CREATE STREAM … AS: every row is a fact of its own"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateChangelogAs(CreateAs):
    """CREATE CHANGELOG … AS: a row replaces the one before with the same primary key"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTableAs(CreateAs):
    """CREATE TABLE … AS: rows of a stream are appended to a store's table, those of a changelog upserted"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateMaterializedViewAs(CreateAs):
    """CREATE MATERIALIZED VIEW … AS: the SELECT's present result, kept up to date, to be read by SELECT"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIndex(Statement):
    """CREATE INDEX [IF NOT EXISTS] name ON view (column, …)"""

    name: Name
    view: Name
    columns: tuple[Name, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateVirtual(Statement):
    """CREATE VIRTUAL STREAM|CHANGELOG virtual.schema.name AS select: inside an application only"""

    name: Name
    changelog: bool
    select: exp.Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateApplication(Statement):
    """BEGIN APPLICATION name statement; … END APPLICATION [WITH (…)]"""

    name: Name
    statements: tuple[Statement, ...]
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateApplication(Statement):
    """TERMINATE APPLICATION name"""

    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartApplication(Statement):
    """RESTART APPLICATION name"""

    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertInto(Statement):
    """INSERT INTO name [WITH (…)] select [QUERY WITH (…)]"""

    name: Name
    properties: Properties
    select: exp.Expression
    query_properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertValues(Statement):
    """INSERT INTO name [(columns)] VALUES (…), (…); no columns = all, in their order"""

    name: Name
    columns: tuple[Name, ...]
    rows: tuple[tuple[Constant, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertEntity(Statement):
    """INSERT INTO ENTITY|TOPIC path [IN STORE s] VALUE('json') [WITH (…)]"""

    name: Name
    value: Constant
    store: Name | None = None
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStore(Statement):
    """UPDATE STORE name WITH (…)"""

    name: Name
    properties: Properties


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSecret(Statement):
    """UPDATE SECRET name WITH (…)"""

    name: Name
    properties: Properties


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSchemaRegistry(Statement):
    """UPDATE SCHEMA_REGISTRY name WITH (…)"""

    name: Name
    properties: Properties


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateEntity(Statement):
    """UPDATE ENTITY|TOPIC path [IN STORE s] WITH (…)"""

    name: Name
    properties: Properties
    store: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunctionSource(Statement):
    """CREATE [OR REPLACE] FUNCTION_SOURCE [IF NOT EXISTS] name [COMMENT 'text'] WITH (…)"""

    name: Name
    properties: Properties
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction(Statement):
    """CREATE [OR REPLACE] FUNCTION [IF NOT EXISTS] name(arguments) RETURNS type LANGUAGE word WITH (…)"""

    name: Name
    arguments: tuple[ColumnDefinition, ...]
    returns: str
    returns_position: Position
    language: str
    properties: Properties
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(Statement):
    """DROP DATABASE|SCHEMA|STORE|ENTITY|STREAM|CHANGELOG|RELATION|QUERY|INDEX|… [IF EXISTS] name …"""

    noun: Literal[
        "database",
        "schema",
        "store",
        "entity",
        "stream",
        "changelog",
        "table",
        "materialized_view",
        "index",
        "relation",
        "query",
        "secret",
        "schema_registry",
        "descriptor_source",
        "function",
        "function_source",
        "application",
        "savepoint",
        "role",
        "user",
        "service_account",
        "api_token",
        "invitation",
    ]
    name: Name
    store: Name | None = None
    if_exists: bool = False
    signature: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Use(Statement):
    """USE DATABASE|SCHEMA|STORE|ROLE name"""

    noun: Literal["database", "schema", "store", "role"]
    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDefault(Statement):
    """SET DEFAULT DATABASE|SCHEMA|STORE name: for this caller's later requests"""

    noun: Literal["database", "schema", "store"]
    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class ListObjects(Statement):
    """LIST|SHOW DATABASES|SCHEMAS|STORES|ENTITIES|STREAMS|CHANGELOGS|RELATIONS|QUERIES|SECRETS|… [IN …]

    Attributes:
        noun: what is listed.
        within: where.
        of: the word that says what ``within`` names, such as ``database``.
    """

    noun: Literal[
        "databases",
        "schemas",
        "stores",
        "entities",
        "streams",
        "changelogs",
        "tables",
        "materialized_views",
        "relations",
        "queries",
        "functions",
        "secrets",
        "schema_registries",
        "descriptor_sources",
        "descriptors",
        "function_sources",
        "applications",
        "savepoints",
        "roles",
        "users",
        "service_accounts",
        "api_tokens",
        "invitations",
    ]
    within: Name | None = None
    of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe(Statement):
    """DESCRIBE DATABASE|SCHEMA|STORE|ENTITY|RELATION|STREAM|QUERY|SECRET|… name [IN STORE s]"""

    noun: Literal[
        "database",
        "schema",
        "store",
        "entity",
        "relation",
        "stream",
        "changelog",
        "table",
        "materialized_view",
        "query",
        "function",
        "function_source",
        "secret",
        "schema_registry",
        "descriptor_source",
        "application",
    ]
    name: Name
    store: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuery(Statement):
    """DESCRIBE QUERY STATE|METRICS|EVENTS|HISTORY name"""

    what: Literal["state", "metrics", "events", "history"]
    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate(Statement):
    """GENERATE COLUMNS FROM | TEMPLATE FOR ENTITY|TOPIC path [IN STORE s] [WITH ('limit' = n)]"""

    what: Literal["columns", "template"]
    name: Name
    store: Name | None = None
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeStatement(Statement):
    """DESCRIBE <CREATE … | INSERT … | SELECT …>: a dry run"""

    statement: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Print(Statement):
    """PRINT ENTITY|TOPIC path [IN STORE s] [WITH ('from_beginning', 'limit'=n)]"""

    name: Name
    store: Name | None = None
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateQuery(Statement):
    """TERMINATE QUERY name [WITH SAVEPOINT savepoint]"""

    name: Name
    savepoint: Name | None = None


@dataclass(frozen=True, slots=True)
class StartPoint:
    """FROM EARLIEST, LATEST, TIMESTAMP … or OFFSETS …; ``value`` is what follows the word."""

    word: str
    value: Value | None
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartQuery(Statement):
    """RESTART QUERY name [FROM … | SKIP RECORD record]"""

    name: Name
    start: StartPoint | None = None
    skip: Value | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartQueries(Statement):
    """RESTART QUERIES FAILED BY cause [SKIP RECORD]"""

    cause: Value
    skip: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackQuery(Statement):
    """ROLLBACK QUERY name"""

    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Statement):
    """select [LIMIT n]: a SELECT of its own (interactive)"""

    select: exp.Expression
    limit: int | None = None
