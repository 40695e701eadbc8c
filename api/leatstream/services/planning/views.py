"""The plan of CREATE MATERIALIZED VIEW … AS SELECT: a relation without store and entity, and its job."""

from __future__ import annotations

from collections.abc import Sequence

from leatstream.errors import Faults, Position, RequestError, sentence
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import Column, Effective, Origin, Relation, RelationKind
from leatstream.model.types import DataType
from leatstream.plan.job_spec import ColumnSpec, SinkSpec, StoreRef, ViewSpec
from leatstream.services.environment import Environment
from leatstream.services.staging.catalog_view import assumed_meta
from leatstream.sql.statements import CreateMaterializedViewAs
from leatstream.sql.view_properties import ViewProperties

VIEW_STORE = StoreRef(name="", kind="view", config={})


def view_relation(
    env: Environment,
    statement: CreateMaterializedViewAs,
    fqn: Fqn,
    columns: tuple[Column, ...],
    keys: tuple[str, ...],
    given: ViewProperties,
) -> Relation:
    """The relation that a statement makes; meta is to be replaced.

    Args:
        env: the environment.
        statement: as it was read.
        fqn: full name of the view.
        columns: of the view.
        keys: its primary key; empty = every row is kept.
        given: properties of the view.

    Raises:
        RequestError: a column is of a type that a view cannot hold, or views cannot be kept at all.
    """
    if env.views.unusable is not None:
        raise RequestError("unsupported", sentence(env.views.unusable), position=statement.name.position)
    _check_columns(columns, statement.name.position)
    # A group's row replaces the one before; without groups every row is kept.
    effective = {"view.mode": Effective("upsert" if keys else "append", Origin.DEFAULT)}
    if given.retention_ms is not None:
        effective["retention"] = Effective(statement.properties["retention"].value, Origin.EXPLICIT)
    return Relation(
        meta=assumed_meta(env.clock.now(), str(fqn)),
        fqn=fqn,
        kind=RelationKind.MATERIALIZED_VIEW,
        columns=columns,
        store="",
        entity="",
        value_format="",
        properties={k: v.value for k, v in statement.properties.items()},
        effective=effective,
        primary_key=keys,
        comment=statement.comment,
    )


def view_sink(sink: Relation, given: ViewProperties, *, deletes: bool) -> SinkSpec:
    """Where the job writes; the table and its database are filled in when it is handed to a driver.

    Args:
        sink: the view.
        given: its properties.
        deletes: whether the job removes rows.
    """
    return SinkSpec(
        relation=str(sink.fqn),
        store=VIEW_STORE,
        entity="",
        columns=[ColumnSpec(name=c.name, type=str(c.type), not_null=c.not_null) for c in sink.columns],
        value_format="",
        key_columns=list(sink.primary_key),
        deletes=deletes,
        view=ViewSpec(retention_ms=given.retention_ms),
    )


def _check_columns(columns: Sequence[Column], position: Position) -> None:
    faults = Faults()
    for column in columns:
        if _odd_map(column.type):
            faults.add(
                "type-mismatch",
                f"Column {quote(column.name)} is {column.type}; in a view a map has VARCHAR keys.",
                position=position,
            )
    faults.raise_if_any()


def _odd_map(kind: DataType) -> bool:
    wrong = kind.kind == "MAP" and kind.arguments[0].kind != "VARCHAR"
    return wrong or any(map(_odd_map, kind.arguments))
