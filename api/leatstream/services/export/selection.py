"""Which objects an export holds, by the names that a person gives, and in which order they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush

from leatstream.errors import RequestError, ambiguous, not_found
from leatstream.model.names import quote, split
from leatstream.services.environment import Environment, Principal
from leatstream.services.export.objects import KINDS, Exported, Ref, exported_objects

_RANK = {kind: number for number, kind in enumerate(KINDS)}
_BY_PARTS = {2: "schema", 3: "relation"}


def export(env: Environment, who: Principal, names: Sequence[str] = ()) -> list[Exported]:
    """The objects to export, each after what it needs.

    Args:
        env: the environment.
        who: who asks.
        names: of objects, each with or without ``kind:`` before it; none = everything that is seen. A
            database brings its schemas, and both bring their relations and the queries that write them.

    Raises:
        RequestError: validation, a name is none, or fits objects of several kinds.
        CatalogError: not-found.
    """
    found = exported_objects(env, who)
    if names:
        chosen = {one.ref for name in names for one in _chosen(found, name)}
        found = [one for one in found if one.ref in chosen]
    return in_order(found)


def in_order(found: Iterable[Exported]) -> list[Exported]:
    """Objects by kind and name, each after what it needs."""
    by_ref = {one.ref: one for one in found}
    try:
        return _sorted(by_ref, lambda one: one.needs | one.follows)
    except CycleError:
        # A query may feed its own source through an entity; the entity then exists before both.
        return _sorted(by_ref, lambda one: one.needs)


def _sorted(by_ref: dict[Ref, Exported], before: Callable[[Exported], Iterable[Ref]]) -> list[Exported]:
    sorter = TopologicalSorter(
        {ref: [need for need in before(one) if need in by_ref] for ref, one in by_ref.items()}
    )
    sorter.prepare()
    ordered: list[Exported] = []
    ready = [_place(ref) for ref in sorter.get_ready()]
    heapify(ready)
    while ready:
        _, _, ref = heappop(ready)
        ordered.append(by_ref[ref])
        sorter.done(ref)
        for one in sorter.get_ready():
            heappush(ready, _place(one))
    return ordered


def _place(ref: Ref) -> tuple[int, str, Ref]:
    return _RANK[ref.kind], ref.name, ref


def _chosen(found: Sequence[Exported], text: str) -> list[Exported]:
    kind, parts = _read(text)
    name = ".".join(map(quote, parts))
    if kind is None:
        kind = _BY_PARTS.get(len(parts)) or _only_kind(found, name, text)
    fitting = [one for one in found if one.ref == Ref(kind, name)]
    if kind in ("database", "schema"):
        fitting += [one for one in found if any(place.startswith(f"{name}.") for place in one.places)]
        fitting += [one for one in found if one.ref.kind == "schema" and one.ref.name.startswith(f"{name}.")]
    elif kind == "relation":
        # A relation that a query makes is exported as the query.
        fitting += [one for one in found if one.ref.kind != "relation" and name in one.places][:1]
    if not fitting:
        raise not_found(kind.replace("_", " "), name)
    return fitting


def _read(text: str) -> tuple[str | None, tuple[str, ...]]:
    """Kind, where it is given, and parts of a name."""
    kind, colon, rest = text.partition(":")
    given = kind.strip().lower().replace("-", "_") if colon and '"' not in kind else None
    if given is not None and given not in KINDS:
        raise RequestError(
            "validation",
            f"{given[:100]} is no kind of object that can be exported.",
            hint=f"Kinds are {', '.join(KINDS)}.",
        )
    try:
        parts = split(rest if given else text)
    except ValueError as error:
        raise RequestError("validation", f"{str(error)[:1].upper()}{str(error)[1:]}.") from error
    most = next((count for count, one in _BY_PARTS.items() if one == given), 1)
    if (given and len(parts) != most) or len(parts) > max(_BY_PARTS):
        raise RequestError(
            "validation",
            f"{text[:200]} is not the name of one object.",
            hint="Write demo, demo.public, demo.public.pageviews, or the kind before the name: store:kafka.",
        )
    return given, parts


def _only_kind(found: Sequence[Exported], name: str, text: str) -> str:
    kinds = [one.ref.kind for one in found if one.ref.name == name]
    if not kinds:
        raise not_found("object", text)
    if len(kinds) > 1:
        raise ambiguous(name, [f"{kind}:{text}" for kind in kinds])
    return kinds[0]
