"""Random statements of every class, made of their fields."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

from hypothesis import strategies as st
from query_strategies import NAMES, TEXTS, TYPES, queries

from leatstream.errors import Position
from leatstream.model.access import KINDS, NAME_PARTS
from leatstream.sql import access_statements as access
from leatstream.sql import statements as s
from leatstream.sql.constants import Constant
from leatstream.sql.parser import parse

_PLACE = Position(1, 1, 0, 0)
_COMMENTS = st.none() | TEXTS.filter(lambda text: all(ord(c) >= 32 or c in "\n\t" for c in text))
_FLAG = st.booleans()


def _name(least: int, most: int) -> st.SearchStrategy[s.Name]:
    return st.lists(NAMES, min_size=least, max_size=most).map(lambda parts: s.Name(tuple(parts), _PLACE))


ONE, UP_TO_TWO, UP_TO_THREE, PATH = _name(1, 1), _name(1, 2), _name(1, 3), _name(1, 4)
_NUMBERS = st.from_regex(r"([0-9]{1,5}\.[0-9]{0,8}|\.[0-9]{1,18})(e-?[0-9]{1,2})?", fullmatch=True)


def _value(value: Any, kind: Any) -> s.Value:
    return s.Value(value, kind, _PLACE, _PLACE)


VALUES = st.one_of(
    TEXTS.map(lambda text: _value(text, "string")),
    TEXTS.map(lambda text: _value(text, "identifier")),
    st.sampled_from(("KAFKA", "json", "Orders", "é")).map(lambda word: _value(word, "keyword")),
    _FLAG.map(lambda flag: _value(flag, "keyword")),
    st.integers(-(10**19) + 1, 10**19 - 1).map(lambda number: _value(number, "number")),
    _NUMBERS.filter(lambda text: len(text) <= 19).map(lambda text: _value(float(text), "number")),
)
_KEYS = st.one_of(
    st.sampled_from(("topic", "value.format", "it's")), TEXTS.map(lambda text: text.strip().lower())
)
GIVEN = st.dictionaries(_KEYS, VALUES, min_size=1, max_size=3)
MAYBE_GIVEN = st.just({}) | GIVEN
_ODD_TYPES = st.sampled_from(("INT", "numeric(5)", "struct<`a` int, b : string>", "GEOMETRY ( 1 , 2 )"))


def _column(named: str, kind: str, not_null: bool, comment: str | None) -> s.ColumnDefinition:
    return s.ColumnDefinition(named, kind, not_null, _PLACE, _PLACE, comment)


COLUMNS = st.builds(_column, NAMES, TYPES | _ODD_TYPES, _FLAG, _COMMENTS)
ARGUMENTS = st.builds(_column, NAMES, TYPES, st.just(False), st.none())


def _tuples(of: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(of, min_size=least, max_size=3).map(tuple)


def _constant(kind: Any, text: str = "", items: tuple[Constant, ...] = ()) -> Constant:
    return Constant(kind, _PLACE, text, items)


_PLAIN_CONSTANTS = st.one_of(
    st.just(_constant("null")),
    st.sampled_from(("true", "false")).map(lambda text: _constant("boolean", text)),
    st.sampled_from(("0", "-2.50", "1e9", ".5")).map(lambda text: _constant("number", text)),
    TEXTS.map(lambda text: _constant("string", text)),
    st.sampled_from(("date", "timestamp")).flatmap(
        lambda kind: TEXTS.map(lambda text: _constant(kind, text))
    ),
    st.binary(max_size=3).map(lambda data: _constant("bytes", data.hex())),
)
CONSTANTS = st.recursive(
    _PLAIN_CONSTANTS,
    lambda inner: st.builds(
        lambda kind, items: _constant(kind, items=items),
        st.sampled_from(("array", "map", "struct")),
        _tuples(inner),
    ),
    max_leaves=6,
)
SELECTS = queries(1).map(lambda text: parse(f"INSERT INTO t {text}")[0].select)  # type: ignore[attr-defined]


def _nouns(kind: type[s.Statement]) -> tuple[str, ...]:
    return get_args(get_type_hints(kind, vars(s) | {"exp": Any, "Constant": Any})["noun"])


def _how(fields: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """With IF NOT EXISTS, OR REPLACE or neither of them, and a comment."""
    how = st.sampled_from(((False, False), (True, False), (False, True)))
    more = st.tuples(how, _COMMENTS).map(
        lambda pair: {"if_not_exists": pair[0][0], "or_replace": pair[0][1], "comment": pair[1]}
    )
    return st.tuples(st.fixed_dictionaries(fields), more).map(lambda pair: pair[0] | pair[1])


def _of(kind: type[s.Statement], fields: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Any]:
    return fields.map(lambda given: kind(text="", position=_PLACE, **given))


def _plain(kind: type[s.Statement], **fields: Any) -> st.SearchStrategy[Any]:
    return _of(kind, st.fixed_dictionaries(fields))


def _made(kind: type[s.Statement], **fields: Any) -> st.SearchStrategy[Any]:
    return _of(kind, _how(fields))


def _as(kind: type[s.Statement]) -> st.SearchStrategy[Any]:
    return _made(kind, name=UP_TO_THREE, properties=MAYBE_GIVEN, select=SELECTS, query_properties=MAYBE_GIVEN)


def _keyed(kind: type[s.Statement], least: int) -> st.SearchStrategy[Any]:
    keys = _tuples(ONE, least)
    return _made(
        kind, name=UP_TO_THREE, columns=_tuples(COLUMNS, 1), primary_key=keys, properties=MAYBE_GIVEN
    )


_STORED = {"name": PATH, "store": st.none() | ONE}


def _named(noun: str) -> st.SearchStrategy[s.Name]:
    return PATH if noun == "entity" else UP_TO_THREE


def _on_noun(kind: type[s.Statement], fields: Any) -> st.SearchStrategy[Any]:
    """Of any noun; ``fields`` gives the others of it."""
    nouns = st.sampled_from(_nouns(kind))
    return _of(
        kind, nouns.flatmap(lambda noun: st.fixed_dictionaries({"noun": st.just(noun)} | fields(noun)))
    )


def _dropped(noun: str) -> dict[str, Any]:
    return {
        "name": _named(noun),
        "if_exists": _FLAG,
        "store": st.none() | ONE if noun == "entity" else st.none(),
        "signature": st.none() | _tuples(TYPES) if noun == "function" else st.none(),
    }


def _described(noun: str) -> dict[str, Any]:
    return {"name": _named(noun), "store": st.none() | ONE if noun == "entity" else st.none()}


def _listed(noun: str) -> dict[str, Any]:
    schemas = ("streams", "changelogs", "tables", "materialized_views", "relations")
    places = {"schemas": "database", "entities": "store", "descriptors": "descriptor_source"}
    place = {**places, **dict.fromkeys(schemas, "schema")}.get(noun)
    within = {"within": UP_TO_TWO, "of": st.just(place)} if place else {"within": st.none(), "of": st.none()}
    return within


def _session(noun: str) -> dict[str, Any]:
    return {"name": UP_TO_TWO if noun == "schema" else ONE}


_VIRTUAL = _plain(
    s.CreateVirtual,
    name=st.lists(NAMES, min_size=2, max_size=2).map(lambda parts: s.Name(("virtual", *parts), _PLACE)),
    changelog=_FLAG,
    select=SELECTS,
)
_INSERTS = _plain(
    s.InsertInto, name=UP_TO_THREE, properties=MAYBE_GIVEN, select=SELECTS, query_properties=MAYBE_GIVEN
)
_USES = _plain(s.Use, noun=st.just("schema"), name=UP_TO_TWO)
_SELECTED = queries(2).map(lambda text: parse(text)[0])
_STARTS = st.one_of(
    st.sampled_from(("earliest", "latest")).map(lambda word: s.StartPoint(word, None, _PLACE)),
    st.builds(
        lambda word, value: s.StartPoint(word, value, _PLACE),
        st.sampled_from(("timestamp", "offsets")),
        VALUES,
    ),
)
_QUOTED = TEXTS.map(lambda text: _value(text, "string"))
_RESTARTS = st.one_of(
    _plain(s.RestartQuery, name=ONE, start=st.none() | _STARTS),
    _plain(s.RestartQuery, name=ONE, skip=_QUOTED),
)
_REGISTERED = (
    *(s.CreateStore, s.CreateSecret, s.CreateSchemaRegistry, s.CreateDescriptorSource),
    s.CreateFunctionSource,
)


def _target(noun: str) -> st.SearchStrategy[access.AccessTarget]:
    named = {"noun": st.just(noun), "name": _name(1, NAME_PARTS[noun])}
    if noun == "store":
        patterns = TEXTS.map(lambda text: _value(text, "string"))
        named["entities"] = st.none() | patterns
    every = [st.just(access.AccessTarget(noun=noun))]
    if noun in ("schema", "relation"):
        every.append(_within(noun, ONE, "database"))
        every.append(_within(noun, UP_TO_TWO, "schema"))
    return st.one_of(st.builds(access.AccessTarget, **named), *every)


def _within(noun: str, names: st.SearchStrategy[s.Name], of: Any) -> st.SearchStrategy[access.AccessTarget]:
    return st.builds(access.AccessTarget, noun=st.just(noun), within=names, of=st.just(of))


_TARGETS = st.one_of(st.just(access.AccessTarget(noun="organization")), *map(_target, KINDS))
_PRIVILEGES = st.sampled_from(("select", "insert", "usage", "all", "create_query"))
_REVOKES = _plain(
    access.GrantPrivileges,
    privileges=_tuples(_PRIVILEGES, 1),
    target=_TARGETS,
    role=ONE,
    grant_option=st.just(False),
    revoke=st.just(True),
)
_GRANTS = _plain(
    access.GrantPrivileges,
    privileges=_tuples(_PRIVILEGES, 1),
    target=_TARGETS,
    role=ONE,
    grant_option=_FLAG,
    revoke=st.just(False),
)


STATEMENTS: dict[type[s.Statement], st.SearchStrategy[Any]] = {
    access.CreateRole: _plain(access.CreateRole, name=ONE, comment=_COMMENTS, if_not_exists=_FLAG),
    access.CreateAccount: _plain(
        access.CreateAccount,
        noun=st.sampled_from(access.ACCOUNTS),
        name=ONE,
        properties=MAYBE_GIVEN,
        comment=_COMMENTS,
        if_not_exists=_FLAG,
    ),
    access.CreateToken: _plain(
        access.CreateToken, name=ONE, properties=MAYBE_GIVEN, comment=_COMMENTS, if_not_exists=_FLAG
    ),
    access.InviteUser: _plain(access.InviteUser, name=ONE, properties=MAYBE_GIVEN, comment=_COMMENTS),
    access.GrantPrivileges: _GRANTS | _REVOKES,
    access.GrantRole: _plain(
        access.GrantRole, role=ONE, noun=st.sampled_from(("role", *access.ACCOUNTS)), name=ONE, revoke=_FLAG
    ),
    access.CanI: _plain(access.CanI, privilege=_PRIVILEGES, target=_TARGETS),
    access.ListGrants: _plain(access.ListGrants, role=ONE) | _plain(access.ListGrants, target=_TARGETS),
    **{kind: _made(kind, name=ONE, properties=GIVEN) for kind in _REGISTERED},
    **{
        kind: _as(kind)
        for kind in (s.CreateStreamAs, s.CreateChangelogAs, s.CreateTableAs, s.CreateMaterializedViewAs)
    },
    **{
        kind: _plain(kind, name=ONE, properties=GIVEN)
        for kind in (s.UpdateStore, s.UpdateSecret, s.UpdateSchemaRegistry)
    },
    **{
        kind: _plain(kind, name=ONE)
        for kind in (s.TerminateApplication, s.RestartApplication, s.RollbackQuery)
    },
    s.CreateDatabase: _made(s.CreateDatabase, name=ONE),
    s.CreateSchema: _made(s.CreateSchema, name=UP_TO_TWO, database=st.none() | ONE),
    s.CreateFunction: _made(
        s.CreateFunction,
        name=ONE,
        arguments=_tuples(ARGUMENTS),
        returns=TYPES,
        returns_position=st.just(_PLACE),
        language=st.sampled_from(("python", "java")),
        properties=GIVEN,
    ),
    s.CreateEntity: _plain(s.CreateEntity, **_STORED, properties=MAYBE_GIVEN, if_not_exists=_FLAG),
    s.CreateStream: _made(
        s.CreateStream, name=UP_TO_THREE, columns=_tuples(COLUMNS, 1), properties=MAYBE_GIVEN
    ),
    s.CreateChangelog: _keyed(s.CreateChangelog, 1),
    s.CreateTable: _keyed(s.CreateTable, 0),
    s.CreateIndex: _plain(
        s.CreateIndex, name=ONE, view=UP_TO_THREE, columns=_tuples(ONE, 1), if_not_exists=_FLAG
    ),
    s.CreateVirtual: _plain(s.CreateApplication, name=ONE, statements=_tuples(_VIRTUAL, 1)),
    s.CreateApplication: _plain(
        s.CreateApplication,
        name=ONE,
        statements=_tuples(_INSERTS | _VIRTUAL | _USES, 1),
        properties=MAYBE_GIVEN,
    ),
    s.InsertInto: _INSERTS,
    s.InsertValues: _plain(
        s.InsertValues,
        name=UP_TO_THREE,
        columns=_tuples(ONE),
        rows=_tuples(_tuples(CONSTANTS, 1), 1),
    ),
    s.InsertEntity: _plain(
        s.InsertEntity,
        **_STORED,
        value=TEXTS.map(lambda text: _constant("string", text)),
        properties=MAYBE_GIVEN,
    ),
    s.UpdateEntity: _plain(s.UpdateEntity, **_STORED, properties=GIVEN),
    s.Drop: _on_noun(s.Drop, _dropped),
    s.Use: _on_noun(s.Use, _session),
    s.SetDefault: _on_noun(s.SetDefault, _session),
    s.ListObjects: _on_noun(s.ListObjects, _listed),
    s.Describe: _on_noun(s.Describe, _described),
    s.DescribeQuery: _plain(
        s.DescribeQuery, what=st.sampled_from(("state", "metrics", "events", "history")), name=ONE
    ),
    s.DescribeStatement: _plain(
        s.DescribeStatement, statement=_INSERTS | _RESTARTS | _made(s.CreateDatabase, name=ONE)
    ),
    s.Generate: _plain(
        s.Generate, what=st.sampled_from(("columns", "template")), **_STORED, properties=MAYBE_GIVEN
    ),
    s.Print: _plain(s.Print, **_STORED, properties=MAYBE_GIVEN),
    s.TerminateQuery: _plain(s.TerminateQuery, name=ONE, savepoint=st.none() | ONE),
    s.RestartQuery: _RESTARTS,
    s.RestartQueries: _plain(s.RestartQueries, cause=_QUOTED, skip=_FLAG),
    s.Select: _SELECTED,
}
