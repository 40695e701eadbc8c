"""Whether a relation can be in a store of some kind: formats, keys, the kind's own properties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import kinds_that
from leatstream.errors import Faults
from leatstream.model.objects import Column, Effective, Origin, Relation
from leatstream.sql.relation_properties import RelationProperties

Where = Callable[[str], dict[str, Any]]


def check_declared_fit(
    connector: Connector, given: RelationProperties, changelog: bool, faults: Faults, where: Where
) -> None:
    """Note what a declared relation cannot be in this store.

    Args:
        connector: the store's.
        given: its properties.
        changelog: whether it is one.
        faults: takes what is wrong.
        where: position or pointer of a property.
    """
    can = connector.capabilities
    if not (can.source or can.sink or can.lookup):
        detail = f"Stores of kind {connector.kind} have no relations that queries read or write."
        hint = f"Declare it in a store of kind {kinds_that('source')}."
        faults.add("unsupported", detail, hint=hint, **where("store"))
    _check_keys(connector, given, changelog, faults, where)
    _check_headers(connector, given, faults, where)
    if given.value_format is not None:
        _check_format(connector, given.value_format, faults, where)
    for name, value in (
        ("delivery.guarantee", given.delivery_guarantee),
        ("sink.timestamp.strategy", given.sink_timestamp_strategy),
    ):
        if value is not None:
            what = f"'{name}' is of a query that writes, not of what is declared."
            faults.add("invalid-property", what, hint="Write it with INSERT INTO … WITH.", **where(name))


def check_sink_fit(
    connector: Connector,
    given: RelationProperties,
    left: Relation,
    changelog: bool,
    faults: Faults,
    where: Where,
) -> None:
    """The same of a new sink, whose value format may be that of the left-most source ``left``.

    Args:
        connector: of the sink's store.
        given: properties of the sink.
        left: the left-most source.
        changelog: whether the sink is one.
        faults: takes what is wrong.
        where: position or pointer of a property.
    """
    _check_keys(connector, given, changelog, faults, where)
    _check_headers(connector, given, faults, where)
    if given.value_format is not None:
        _check_format(connector, given.value_format, faults, where)
    elif left.value_format not in connector.value_formats:
        faults.add(
            "property-required",
            f"'value.format' must be given: that of the left-most source {left.fqn} is {left.value_format}, "
            f"which stores of kind {connector.kind} do not hold.",
            hint=f"WITH ('value.format' = '{connector.value_formats[0]}')",
            **where("value.format"),
        )


def kind_options(
    connector: Connector,
    given: RelationProperties,
    columns: Sequence[Column],
    value_format: str,
    faults: Faults,
    where: Where,
) -> dict[str, Effective]:
    """The properties in the kind's own words, checked; faults are noted.

    Args:
        connector: of the store.
        given: properties of the relation.
        columns: of the relation.
        value_format: of the relation.
        faults: takes what is wrong.
        where: position or pointer of a property.
    """
    if value_format not in connector.value_formats:
        return {}
    found, wrong = connector.relation_options(given.other, [c.name for c in columns], value_format)
    for fault in wrong:
        faults.add("invalid-property", fault.detail, hint=fault.hint, **where(fault.name))
    return {name: Effective(text, Origin.EXPLICIT) for name, text in found.items()}


def _check_format(connector: Connector, value_format: str, faults: Faults, where: Where) -> None:
    if value_format not in connector.value_formats:
        faults.add(
            "unsupported",
            f"Stores of kind {connector.kind} do not hold {value_format}.",
            hint=f"Available: {', '.join(connector.value_formats)}.",
            **where("value.format"),
        )


def _check_headers(connector: Connector, given: RelationProperties, faults: Faults, where: Where) -> None:
    if given.headers_column is not None and not connector.capabilities.headers:
        faults.add(
            "unsupported",
            f"Records in stores of kind {connector.kind} have no headers, so a column cannot be them.",
            hint="Leave 'headers.column' out: the column is in the value then.",
            **where("headers.column"),
        )


def _check_keys(
    connector: Connector, given: RelationProperties, changelog: bool, faults: Faults, where: Where
) -> None:
    if connector.keyed:
        if given.value_columns_exclude and not connector.exact_keys:
            faults.add(
                "unsupported",
                f"Stores of kind {connector.kind} keep a digest of some keys, so a column cannot be in the "
                "key alone.",
                hint="Leave 'value.columns.exclude' out.",
                **where("value.columns.exclude"),
            )
        return
    if changelog:
        faults.add(
            "unsupported",
            f"Store '{connector.name}' is of kind {connector.kind}, whose records have no keys, so it holds "
            "no changelogs.",
            hint="Make it in a Kafka store, or write a stream.",
            **where(""),
        )
    values = {
        "key.format": given.key_format,
        "key.type": given.key_type,
        "key.columns": given.key_columns or None,
        "value.columns.exclude": given.value_columns_exclude or None,
    }
    for name, value in values.items():
        if value is not None:
            detail = f"{name} has no meaning in stores of kind {connector.kind}: their records have no keys."
            faults.add("invalid-property", detail, **where(name))
