"""The words of the language, for completion: read from the tables of the parser and of the properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Words inside statements. A test compares them with those that the parser reads.
_CLAUSES = """
after all and as asc before between by case cast columns comment cross cumulate data default define desc
distinct else empty end escape except exists failed false fetch filter final first for from full grace
grants group grouping having hop i if ilike in inner intersect interval into is java join key language
last lateral left like limit match match_recognize matches materialized measures next not null nulls omit
on one only option or order ordinality organization outer over partition past pattern per period permute
placing primary python queries query record recursive replace returns right rlike role row rows running
savepoint select session sets skip statement subset template then to true tumble union unmatched unnest
using value values virtual when where window with within
"""
CLAUSES = tuple(_CLAUSES.split())


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What completion may offer without asking the server.

    Attributes:
        statements: first words of statements.
        nouns: first word of a statement to the nouns after it.
        clauses: words inside statements.
        functions: built-in functions.
        types: of columns.
        properties: what a WITH list belongs to, such as ``store``, to its properties.
    """

    statements: tuple[str, ...] = ()
    nouns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    clauses: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    properties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_vocabulary() -> Vocabulary:
    """The words of this installation; none where the parser's library (extra ``server``) is missing."""
    try:
        return _read()
    except ImportError:
        return Vocabulary()


def _read() -> Vocabulary:
    from leatstream.model.types import known_types
    from leatstream.sql.dialect import Leat
    from leatstream.sql.function_table import functions
    from leatstream.sql.parser import StatementParser

    statements = ("select", *StatementParser(dialect=Leat()).readers())
    return Vocabulary(
        statements=tuple(dict.fromkeys(statements)),
        nouns=_nouns(),
        clauses=CLAUSES,
        functions=tuple(sorted(functions())),
        types=tuple(known_types()),
        properties=_properties(),
    )


def _nouns() -> dict[str, tuple[str, ...]]:
    from leatstream.sql.noun_statements import DROPPED, LISTED
    from leatstream.sql.parser import CREATED, DESCRIBED

    contexts = ("database", "schema", "store")
    listed, inner = _spaced(LISTED), ("create", "insert", "select", "restart")
    return {
        "create": ("or replace", *_spaced(CREATED)),
        "drop": _spaced(DROPPED),
        "list": listed,
        "show": (*listed, "grants"),
        "describe": (*_spaced(DESCRIBED), *inner),
        "explain": inner,
        "use": (*contexts, "role"),
        "set": tuple(f"default {noun}" for noun in contexts),
        "print": ("entity",),
        "insert": ("into", "into entity"),
        "terminate": ("query", "application"),
        "restart": ("query", "queries failed by", "application"),
        "rollback": ("query",),
        "update": ("store", "entity", "secret", "schema_registry"),
        "generate": ("columns", "template"),
        "begin": ("application",),
    }


def _spaced(nouns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(noun.replace("materialized_", "materialized ") for noun in nouns)


def _properties() -> dict[str, tuple[str, ...]]:
    from leatstream.connectors.registry import connector_classes
    from leatstream.services.planning.query_properties import QUERY_PROPERTIES
    from leatstream.services.statements.printed_records import PRINT_PROPERTIES
    from leatstream.sql.registered_properties import REGISTRY_KEYS, SECRET_KEYS
    from leatstream.sql.relation_properties import PLAIN
    from leatstream.sql.source_properties import KNOWN
    from leatstream.sql.store_properties import known_properties
    from leatstream.sql.view_properties import VIEW_PROPERTIES

    kinds = connector_classes().values()
    entity = sorted({one.name for kind in kinds for one in kind.entity_properties})
    return {
        "store": tuple(dict.fromkeys(key for kind in kinds for key in known_properties(kind))),
        "entity": tuple(entity),
        "relation": (*PLAIN, *entity),
        "view": VIEW_PROPERTIES,
        "source": KNOWN,
        "query": QUERY_PROPERTIES,
        "print": PRINT_PROPERTIES,
        "secret": SECRET_KEYS,
        "schema_registry": REGISTRY_KEYS,
    }
