"""A small catalog, and SQL bound against it."""

from __future__ import annotations

from datetime import UTC, datetime

from leatstream.errors import RequestError
from leatstream.model.names import Fqn
from leatstream.model.objects import Column, Meta, Relation, RelationKind
from leatstream.model.types import parse_type
from leatstream.plan.logical import LogicalPlan
from leatstream.sql.binder import bind
from leatstream.sql.parser import parse
from leatstream.sql.statements import CreateAs, CreateChangelogAs, InsertInto, Name, Select

NOW = datetime(2026, 1, 1, tzinfo=UTC)
META = Meta(id="r", generation=1, created_at=NOW, updated_at=NOW, created_by="admin", owner="admin")
CATALOG = {
    "pageviews": {"viewtime": "BIGINT", "userid": "VARCHAR", "pageid": "VARCHAR"},
    "users": {
        "registertime": "BIGINT",
        "userid": "VARCHAR",
        "regionid": "VARCHAR",
        "gender": "VARCHAR",
        "contact": 'STRUCT<phone VARCHAR, city STRUCT<"Name" VARCHAR, zip INTEGER>>',
        "interests": "ARRAY<VARCHAR>",
        "scores": "MAP<VARCHAR, INTEGER>",
    },
    "examples": {"g": "VARCHAR", "n": "BIGINT", "d": "DOUBLE", "t": "VARCHAR", "b": "BOOLEAN"},
    "t": {"a": "BIGINT", "b": "BOOLEAN", "c": "DECIMAL(9, 2)", "d": "VARCHAR", "g": "DOUBLE"},
    "kinds": {
        "n": "INTEGER",
        "big": "BIGINT",
        "amount": "DECIMAL(10, 2)",
        "x": "DOUBLE",
        "k": "VARCHAR",
        "ok": "BOOLEAN",
        "day": "DATE",
        "at": "TIMESTAMP_LTZ",
        "local": "TIMESTAMP",
        "raw": "BYTES",
        "names": "ARRAY<VARCHAR>",
        "scores": "MAP<VARCHAR, INTEGER>",
    },
    "Ünï 东西": {"ID": "INTEGER", "Größe": "DOUBLE", 'q"`x': "VARCHAR", "select": "BOOLEAN"},
}


def make_relation(
    name: str, columns: dict[str, str], kind: RelationKind = RelationKind.STREAM, *keys: str
) -> Relation:
    """A relation of ``demo.public`` in store ``kafka``."""
    return Relation(
        meta=META,
        fqn=Fqn("demo", "public", name),
        kind=kind,
        columns=tuple(Column(n, parse_type(t)) for n, t in columns.items()),
        store="kafka",
        entity=name,
        value_format="json",
        primary_key=keys,
    )


RELATIONS = {name: make_relation(name, columns) for name, columns in CATALOG.items()}
RELATIONS["counts"] = make_relation("counts", {"userid": "VARCHAR"}, RelationKind.CHANGELOG, "userid")
RELATIONS["accounts"] = make_relation(
    "accounts",
    {"id": "VARCHAR", "region": "VARCHAR", "tenant": "BIGINT", "n": "BIGINT"},
    RelationKind.CHANGELOG,
    "id",
)
RELATIONS["regions"] = make_relation(
    "regions",
    {"tenant": "BIGINT", "code": "VARCHAR", "name": "VARCHAR"},
    RelationKind.CHANGELOG,
    "tenant",
    "code",
)
RELATIONS["products"] = make_relation(
    "products",
    {"id": "BIGINT", "code": "VARCHAR", "name": "VARCHAR", "tags": "ARRAY<VARCHAR>", "maker": "VARCHAR"},
    RelationKind.TABLE,
    "id",
)
RELATIONS["makers"] = make_relation("makers", {"id": "VARCHAR", "city": "VARCHAR"}, RelationKind.TABLE, "id")
RELATIONS["logs"] = make_relation("logs", {"name": "VARCHAR", "n": "BIGINT"}, RelationKind.TABLE)


def resolve(name: Name) -> Relation:
    """Find in the catalog as a service would: database and schema are optional."""
    full = ("demo", "public", *name.parts)[-3:] if len(name.parts) < 3 else name.parts
    if len(name.parts) == 2:
        full = ("demo", *name.parts)
    if full[:2] != ("demo", "public") or full[2] not in RELATIONS:
        raise RequestError("unknown-relation", f"There is no relation {'.'.join(name.parts)}.")
    return RELATIONS[full[2]]


def bind_text(text: str) -> LogicalPlan:
    """Parse one query and bind it."""
    (statement,) = parse(text)
    assert isinstance(statement, CreateAs | InsertInto | Select)
    changelog = isinstance(statement, CreateChangelogAs)
    return bind(statement.select, resolve, text, changelog=changelog)
