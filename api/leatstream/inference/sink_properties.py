"""The left-most-source rule: one pure function from what is known to a sink's entity properties.

For every property that a sink's store kind needs for an entity (partitions and replicas of a Kafka topic,
shards of a Kinesis stream), in this order:

1. what the user wrote; where the entity exists it must equal the entity's own value;
2. the existing entity's value;
3. the left-most source's live value, if its store is of the same kind;
4. nothing: an error that names every missing property, the sink's kind, the left-most source and its kind.

Nothing is ever defaulted. The store kinds declare their properties; there is no special case per kind here.
Source: DESIGN §7; docs/inference.md explains it to users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from leatstream.connectors.capabilities import EntityProperty
from leatstream.connectors.entities import Entity
from leatstream.errors import Faults, Position
from leatstream.model.objects import Effective, Origin


@dataclass(frozen=True, slots=True)
class LeftMostSource:
    """The first relation of FROM, as its store describes it now.

    Attributes:
        fqn: the relation's name, for messages and origins.
        kind: store kind.
        entity: the live entity, or None if it is gone.
    """

    fqn: str
    kind: str
    entity: Entity | None


@dataclass(frozen=True, slots=True)
class SinkRequest:
    """What is asked for.

    Attributes:
        kind: the sink store's kind.
        store: its name, for messages.
        declared: properties that entities of this kind need.
        explicit: canonical property name to the value the user wrote.
        positions: where the user wrote them.
        existing: the sink entity if it is there already.
        left_most: None for a relation that is declared rather than computed.
        limits: largest value the store can give, such as replicas = brokers; checked for new entities only.
        entity: the entity's name, where it is declared.
        reader: the declared relation that reads it, such as ``stream demo.public.orders``; for messages.
        near: an entity of the store with nearly this name.
    """

    kind: str
    store: str
    declared: Sequence[EntityProperty]
    explicit: Mapping[str, int] = field(default_factory=dict)
    positions: Mapping[str, Position] = field(default_factory=dict)
    existing: Entity | None = None
    left_most: LeftMostSource | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    entity: str = ""
    reader: str | None = None
    near: str | None = None


def infer_sink_properties(request: SinkRequest) -> dict[str, Effective]:
    """Fill in every entity property of a sink, with the origin of each value.

    Args:
        request: see SinkRequest.

    Returns:
        Canonical property name to value and origin, for every declared property that has a value.

    Raises:
        RequestError: ``property-required`` naming every missing property at once, or ``invalid-property`` for
            values too small, too large, of another kind of store, or unlike the existing entity's.
    """
    faults = Faults()
    _refuse_foreign(request, faults)
    found: dict[str, Effective] = {}
    missing: list[EntityProperty] = []
    for declared in request.declared:
        effective = _value(request, declared, faults)
        if effective is not None:
            found[declared.name] = effective
        elif request.existing is None:
            missing.append(declared)
    if missing:
        _require(request, missing, faults)
    faults.raise_if_any()
    return found


def _refuse_foreign(request: SinkRequest, faults: Faults) -> None:
    known = {p.name for p in request.declared}
    for name in sorted(set(request.explicit) - known):
        offer = ", ".join(sorted(known)) or "none"
        faults.add(
            "invalid-property",
            f"{name} does not fit store '{request.store}', which is of kind {request.kind}; its entity "
            f"properties are: {offer}.",
            hint="Leave it out." if not known else None,
            position=request.positions.get(name),
            pointer=f"#/properties/{name}",
        )


def _value(request: SinkRequest, declared: EntityProperty, faults: Faults) -> Effective | None:
    explicit = request.explicit.get(declared.name)
    live = request.existing.properties.get(declared.name) if request.existing else None
    if explicit is not None:
        _check_explicit(request, declared, explicit, live, faults)
        return Effective(explicit, Origin.EXPLICIT)
    if request.existing is not None:
        origin = f"{request.store}/{request.existing.name}"
        return None if live is None else Effective(live, Origin.EXISTING_ENTITY, origin)
    inherited = _inherited(request, declared)
    if inherited is None or request.left_most is None:
        return None
    limit = request.limits.get(declared.name)
    if limit is not None and inherited > limit:
        faults.add(
            "invalid-property",
            f"{declared.name} = {inherited}, inferred from the left-most source {request.left_most.fqn}, is "
            f"more than store '{request.store}' can give: it has {limit} broker{'s' if limit != 1 else ''}.",
            hint=f"Set it in the sink's WITH clause: '{declared.name}' = {limit}.",
        )
    return Effective(inherited, Origin.LEFT_MOST_SOURCE, request.left_most.fqn)


def _check_explicit(
    request: SinkRequest, declared: EntityProperty, value: int, live: int | None, faults: Faults
) -> None:
    where = {"position": request.positions.get(declared.name), "pointer": f"#/properties/{declared.name}"}
    if value < declared.minimum:
        faults.add(
            "invalid-property", f"{declared.name} must be at least {declared.minimum}, not {value}.", **where
        )
    elif request.existing is not None:
        if live is not None and live != value:
            faults.add(
                "invalid-property",
                f"{declared.name} = {value} differs from the existing entity '{request.existing.name}' in "
                f"store '{request.store}', which has {live}.",
                hint=f"Leave {declared.name} out to take the entity's own value, or name another topic.",
                **where,
            )
    elif (limit := request.limits.get(declared.name)) is not None and value > limit:
        faults.add(
            "invalid-property",
            f"{declared.name} = {value} is more than store '{request.store}' can give: it has {limit} "
            f"broker{'s' if limit != 1 else ''}.",
            hint=f"At most {limit}.",
            **where,
        )


def _inherited(request: SinkRequest, declared: EntityProperty) -> int | None:
    left = request.left_most
    if left is None or not declared.inheritable or left.kind != request.kind or left.entity is None:
        return None
    return left.entity.properties.get(declared.name)


def _require(request: SinkRequest, missing: Sequence[EntityProperty], faults: Faults) -> None:
    names = " and ".join(p.name for p in missing)
    left = request.left_most
    if left is None:
        _require_declared(request, names, faults)
        return
    if left.kind != request.kind:
        why = (
            f"the sink's store '{request.store}' is of kind {request.kind} but the left-most source "
            f"{left.fqn} is of kind {left.kind}, so there is no value to copy"
        )
    elif left.entity is None:
        why = f"the entity behind the left-most source {left.fqn} is gone, so there is no value to copy"
    else:
        why = f"the left-most source {left.fqn} ({left.kind}) has no fixed value for it to copy"
    example = ", ".join(f"'{p.name}' = {max(p.minimum, 1)}" for p in missing)
    faults.add(
        "property-required",
        f"{names} must be given for the {request.kind} sink: {why}.",
        hint=f"Add to the sink's WITH clause: WITH ({example}).",
    )


def _require_declared(request: SinkRequest, names: str, faults: Faults) -> None:
    """Of a relation over an entity that is not there: most often its name is wrong."""
    if request.reader is None:
        detail = f"{names} must be given to create entity '{request.entity}' in store '{request.store}'."
        faults.add("property-required", detail, hint=f"WITH ({names.replace(' and ', ' = …, ')} = …)")
        return
    meant = f"Did you mean '{request.near}'? " if request.near is not None else ""
    faults.add(
        "property-required",
        f"'{request.entity}', which {request.reader} reads, does not exist in store '{request.store}'.",
        pointer="#/topic",
        hint=f"{meant}Create it first, or give {names} of {request.reader} to have it created empty.",
    )
