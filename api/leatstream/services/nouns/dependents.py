"""Objects that others use cannot be deleted."""

from __future__ import annotations

from dataclasses import replace

from leatstream.errors import CatalogError, Fault, sentence
from leatstream.ports import UnitOfWork
from leatstream.services.environment.desk import desk_of

# How messages begin that name an object, and its kind in grants.
_KINDS = {
    "stream ": "relation",
    "changelog ": "relation",
    "table ": "relation",
    "materialized view ": "relation",
    "query ": "query",
    "schema registry ": "schema_registry",
    "schema ": "schema",
    "store ": "store",
    "function ": "function",
}

_HINT_ENDING = (
    "Their queries are being deleted. Wait until LIST QUERIES no longer shows them, and repeat this."
)


def refuse_dependents(what: str, dependents: list[str], unit: UnitOfWork) -> None:
    """Raise ``has-dependents`` naming each, if there are any; hidden ones are counted.

    Args:
        what: is to be deleted.
        dependents: as messages name them, such as ``query q``.
        unit: of the principal.
    """
    if not dependents:
        return
    seen = [one for one in dependents if _is_seen(unit, one)]
    hidden = len(dependents) - len(seen)
    named = seen + ([f"{hidden} that the role may not see"] if hidden else [])
    hint = _HINT_ENDING if seen == named and _end_soon(seen, unit) else "Drop those first."
    faults = [
        Fault(sentence(f"{one} depends on {what}"), "has-dependents", sqlstate="2BP01") for one in named
    ]
    # A hint belongs to a fault; one is enough for all of them.
    faults[-1] = replace(faults[-1], hint=hint)
    others = " and others" if len(named) > 5 else ""
    raise CatalogError(
        "has-dependents",
        sentence(f"{what} is used by {', '.join(named[:5])}{others}"),
        faults=faults,
        dependents=named,
    )


def _end_soon(dependents: list[str], unit: UnitOfWork) -> bool:
    """Whether each is the sink of a query that ends: DROP QUERY returns before its job has ended."""
    queries = unit.unfiltered.queries.page(limit=100_000)
    ending = {query.sink for query in queries if query.deleting and query.kind.makes_sink}
    return all(one.rpartition(" ")[2] in ending for one in dependents)


def _is_seen(unit: UnitOfWork, dependent: str) -> bool:
    desk = desk_of(unit)
    if desk is None:
        return True
    for word, kind in _KINDS.items():
        if dependent.startswith(word):
            name = dependent.removeprefix(word)
            return desk.rights.sees(kind, name, desk.owner(kind, name))
    return True
