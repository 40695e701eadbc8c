"""Every statement to text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leatstream.model.access import plural
from leatstream.sql import access_statements as access
from leatstream.sql import statements as s
from leatstream.sql.constants import Constant
from leatstream.sql.generation.queries import QueryGenerator
from leatstream.sql.generation.words import dotted, name, properties, string, type_text, value

_QUERIES = QueryGenerator()
_TYPED = {"date": "DATE ", "timestamp": "TIMESTAMP ", "bytes": "X", "string": ""}
_NESTED = {"array": "ARRAY[{}]", "map": "MAP[{}]", "struct": "STRUCT({})"}


def generate(statement: s.Statement) -> str:
    """One line of SQL, without a semicolon, that reads back as a statement equal to this one.

    WITH lists are in the order of their keys, old words and abbreviations replaced: the text is the same for
    statements that differ in these only.
    """
    return WRITERS[type(statement)](statement)


def _words(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _noun(noun: str) -> str:
    return noun.upper().replace("MATERIALIZED_", "MATERIALIZED ")


def _create(noun: str, statement: Any, name_text: str | None = None, comment: str | None = None) -> str:
    """CREATE [OR REPLACE] noun [IF NOT EXISTS] name [COMMENT 'text']"""
    return _words(
        "CREATE",
        "OR REPLACE" if getattr(statement, "or_replace", False) else "",
        noun,
        "IF NOT EXISTS" if statement.if_not_exists else "",
        name_text or dotted(statement.name),
        _comment(comment),
    )


def _comment(text: str | None) -> str:
    return "" if text is None else f"COMMENT {string(text)}"


def _with(given: s.Properties) -> str:
    return f"WITH {properties(given)}" if given else ""


def _in_store(store: s.Name | None) -> str:
    return "" if store is None else f"IN STORE {dotted(store)}"


def _names(names: Sequence[s.Name]) -> str:
    return f"({', '.join(map(dotted, names))})"


def _column(column: s.ColumnDefinition) -> str:
    not_null = "NOT NULL" if column.not_null else ""
    return _words(name(column.name), type_text(column.type), not_null, _comment(column.comment))


def _database(statement: s.CreateDatabase) -> str:
    return _create("DATABASE", statement, comment=statement.comment)


def _schema(statement: s.CreateSchema) -> str:
    within = f"IN DATABASE {dotted(statement.database)}" if statement.database else ""
    return _words(_create("SCHEMA", statement), within, _comment(statement.comment))


def _registered(noun: str) -> Callable[[Any], str]:
    return lambda x: _words(_create(noun, x, comment=x.comment), _with(x.properties))


def _relation(noun: str) -> Callable[[Any], str]:
    def write(statement: Any) -> str:
        parts = [_column(column) for column in statement.columns]
        keys = getattr(statement, "primary_key", ())
        parts += [f"PRIMARY KEY {_names(keys)}"] if keys else []
        listed = f"({', '.join(parts)})" if parts else ""
        return _words(
            _create(noun, statement), listed, _comment(statement.comment), _with(statement.properties)
        )

    return write


def _create_as(noun: str) -> Callable[[s.CreateAs], str]:
    return lambda x: _words(_create(noun, x, comment=x.comment), _with(x.properties), "AS", _select(x))


def _select(statement: s.CreateAs | s.InsertInto) -> str:
    ends = f"QUERY {_with(statement.query_properties)}" if statement.query_properties else ""
    return _words(_QUERIES.query(statement.select), ends)


def _create_entity(statement: s.CreateEntity) -> str:
    return _words(_create("ENTITY", statement), _in_store(statement.store), _with(statement.properties))


def _index(statement: s.CreateIndex) -> str:
    return f"{_create('INDEX', statement)} ON {dotted(statement.view)} {_names(statement.columns)}"


def _virtual(statement: s.CreateVirtual) -> str:
    noun = "CHANGELOG" if statement.changelog else "STREAM"
    return f"CREATE VIRTUAL {noun} {dotted(statement.name)} AS {_QUERIES.query(statement.select)}"


def _application(statement: s.CreateApplication) -> str:
    inside = " ".join(f"{generate(one)};" for one in statement.statements)
    begin = f"BEGIN APPLICATION {dotted(statement.name)} {inside}"
    return _words(begin, "END APPLICATION", _with(statement.properties))


def _function(statement: s.CreateFunction) -> str:
    arguments = ", ".join(map(_column, statement.arguments))
    return _words(
        _create("FUNCTION", statement, f"{dotted(statement.name)}({arguments})"),
        f"RETURNS {type_text(statement.returns)} LANGUAGE {statement.language.upper()}",
        _comment(statement.comment),
        _with(statement.properties),
    )


def _insert_into(statement: s.InsertInto) -> str:
    return _words("INSERT INTO", dotted(statement.name), _with(statement.properties), _select(statement))


def _insert_values(statement: s.InsertValues) -> str:
    rows = ", ".join(f"({_constants(row)})" for row in statement.rows)
    columns = _names(statement.columns) if statement.columns else ""
    return _words("INSERT INTO", dotted(statement.name), columns, "VALUES", rows)


def _insert_entity(statement: s.InsertEntity) -> str:
    target = _words("INSERT INTO ENTITY", dotted(statement.name), _in_store(statement.store))
    return _words(target, f"VALUE({_constant(statement.value)})", _with(statement.properties))


def _constants(items: Sequence[Constant]) -> str:
    return ", ".join(map(_constant, items))


def _constant(constant: Constant) -> str:
    if constant.kind in _NESTED:
        return _NESTED[constant.kind].format(_constants(constant.items))
    if constant.kind in _TYPED:
        return _TYPED[constant.kind] + string(constant.text)
    return constant.text if constant.kind == "number" else (constant.text or "null").upper()


def _update(noun: str) -> Callable[[Any], str]:
    return lambda x: _words("UPDATE", noun, dotted(x.name), _with(x.properties))


def _update_entity(statement: s.UpdateEntity) -> str:
    return _words(
        "UPDATE ENTITY", dotted(statement.name), _in_store(statement.store), _with(statement.properties)
    )


def _drop(statement: s.Drop) -> str:
    types = statement.signature
    signature = "" if types is None else f"({', '.join(map(type_text, types))})"
    optional = "IF EXISTS" if statement.if_exists else ""
    target = dotted(statement.name) + signature
    return _words("DROP", _noun(statement.noun), optional, target, _in_store(statement.store))


def _list(statement: s.ListObjects) -> str:
    within = ""
    if statement.within is not None and statement.of is not None:
        within = f"IN {statement.of.upper()} {dotted(statement.within)}"
    return _words("LIST", _noun(statement.noun), within)


def _describe(statement: s.Describe) -> str:
    return _words("DESCRIBE", _noun(statement.noun), dotted(statement.name), _in_store(statement.store))


def _generate(statement: s.Generate) -> str:
    what = "COLUMNS FROM" if statement.what == "columns" else "TEMPLATE FOR"
    entity = f"GENERATE {what} ENTITY {dotted(statement.name)}"
    return _words(entity, _in_store(statement.store), _with(statement.properties))


def _print(statement: s.Print) -> str:
    entity = f"PRINT ENTITY {dotted(statement.name)}"
    return _words(entity, _in_store(statement.store), _with(statement.properties))


def _terminate(statement: s.TerminateQuery) -> str:
    savepoint = f"WITH SAVEPOINT {dotted(statement.savepoint)}" if statement.savepoint else ""
    return _words("TERMINATE QUERY", dotted(statement.name), savepoint)


def _restart(statement: s.RestartQuery) -> str:
    start, text = statement.start, ""
    if start is not None:
        text = _words("FROM", start.word.upper(), value(start.value) if start.value is not None else "")
    if statement.skip is not None:
        text = f"SKIP RECORD {value(statement.skip)}"
    return _words("RESTART QUERY", dotted(statement.name), text)


def _restart_failed(statement: s.RestartQueries) -> str:
    skip = "SKIP RECORD" if statement.skip else ""
    return _words("RESTART QUERIES FAILED BY", value(statement.cause), skip)


def _named(verb: str) -> Callable[[Any], str]:
    return lambda x: f"{verb} {dotted(x.name)}"


def _account(statement: access.CreateAccount) -> str:
    created = _create(statement.noun.upper(), statement, comment=statement.comment)
    return _words(created, _with(statement.properties))


def _token(statement: access.CreateToken) -> str:
    return _words(_create("API_TOKEN", statement, comment=statement.comment), _with(statement.properties))


def _invite(statement: access.InviteUser) -> str:
    named = f"INVITE USER {dotted(statement.name)}"
    return _words(named, _comment(statement.comment), _with(statement.properties))


def _target(target: access.AccessTarget) -> str:
    noun = target.noun.upper()
    if target.noun == "organization":
        return noun
    if target.name is None:
        within = f"IN {target.of.upper()} {dotted(target.within)}" if target.of and target.within else ""
        return _words("ALL", plural(target.noun).upper(), within)
    entities = f"ENTITIES {value(target.entities)}" if target.entities is not None else ""
    return _words(noun, dotted(target.name), entities)


def _grant(statement: access.GrantPrivileges) -> str:
    verb, to = ("REVOKE", "FROM") if statement.revoke else ("GRANT", "TO")
    option = "WITH GRANT OPTION" if statement.grant_option else ""
    privileges = ", ".join(one.upper() for one in statement.privileges)
    target = _target(statement.target)
    return _words(verb, privileges, "ON", target, to, "ROLE", dotted(statement.role), option)


def _grant_role(statement: access.GrantRole) -> str:
    verb, to = ("REVOKE", "FROM") if statement.revoke else ("GRANT", "TO")
    return _words(verb, "ROLE", dotted(statement.role), to, statement.noun.upper(), dotted(statement.name))


def _list_grants(statement: access.ListGrants) -> str:
    if statement.role is not None:
        return f"LIST GRANTS TO ROLE {dotted(statement.role)}"
    return "LIST GRANTS ON " + (_target(statement.target) if statement.target is not None else "")


WRITERS: dict[type[s.Statement], Callable[[Any], str]] = {
    s.CreateDatabase: _database,
    s.CreateSchema: _schema,
    s.CreateStore: _registered("STORE"),
    s.CreateSecret: _registered("SECRET"),
    s.CreateSchemaRegistry: _registered("SCHEMA_REGISTRY"),
    s.CreateDescriptorSource: _registered("DESCRIPTOR_SOURCE"),
    s.CreateFunctionSource: _registered("FUNCTION_SOURCE"),
    s.CreateFunction: _function,
    s.CreateEntity: _create_entity,
    s.CreateStream: _relation("STREAM"),
    s.CreateChangelog: _relation("CHANGELOG"),
    s.CreateTable: _relation("TABLE"),
    s.CreateStreamAs: _create_as("STREAM"),
    s.CreateChangelogAs: _create_as("CHANGELOG"),
    s.CreateTableAs: _create_as("TABLE"),
    s.CreateMaterializedViewAs: _create_as("MATERIALIZED VIEW"),
    s.CreateIndex: _index,
    s.CreateVirtual: _virtual,
    s.CreateApplication: _application,
    s.TerminateApplication: _named("TERMINATE APPLICATION"),
    s.RestartApplication: _named("RESTART APPLICATION"),
    s.InsertInto: _insert_into,
    s.InsertValues: _insert_values,
    s.InsertEntity: _insert_entity,
    s.UpdateStore: _update("STORE"),
    s.UpdateSecret: _update("SECRET"),
    s.UpdateSchemaRegistry: _update("SCHEMA_REGISTRY"),
    s.UpdateEntity: _update_entity,
    s.Drop: _drop,
    s.Use: lambda x: f"USE {_noun(x.noun)} {dotted(x.name)}",
    s.SetDefault: lambda x: f"SET DEFAULT {_noun(x.noun)} {dotted(x.name)}",
    s.ListObjects: _list,
    s.Describe: _describe,
    s.DescribeQuery: lambda x: f"DESCRIBE QUERY {x.what.upper()} {dotted(x.name)}",
    s.DescribeStatement: lambda x: f"DESCRIBE {generate(x.statement)}",
    s.Generate: _generate,
    s.Print: _print,
    s.TerminateQuery: _terminate,
    s.RestartQuery: _restart,
    s.RestartQueries: _restart_failed,
    s.RollbackQuery: _named("ROLLBACK QUERY"),
    s.Select: lambda x: _QUERIES.query(x.select),
    access.CreateRole: lambda x: _create("ROLE", x, comment=x.comment),
    access.CreateAccount: _account,
    access.CreateToken: _token,
    access.InviteUser: _invite,
    access.GrantPrivileges: _grant,
    access.GrantRole: _grant_role,
    access.CanI: lambda x: f"CAN I {x.privilege.upper()} ON {_target(x.target)}",
    access.ListGrants: _list_grants,
}
