"""Which application a query or a declared relation belongs to: it changes and goes with it."""

from __future__ import annotations

from leatstream.errors import CatalogError
from leatstream.model.names import Fqn, quote
from leatstream.ports import UnitOfWork


def query_owner(unit: UnitOfWork, name: str) -> str | None:
    """The application that a query belongs to; none that is being deleted."""
    apps = unit.applications.page(limit=100_000)
    return next((a.name for a in apps if name in a.queries and not a.deleting), None)


def relation_owner(unit: UnitOfWork, fqn: Fqn) -> str | None:
    """The application that declares a relation; none that is being deleted."""
    apps = unit.applications.page(limit=100_000)
    return next((a.name for a in apps if str(fqn) in a.relations and not a.deleting), None)


def refuse_changed_alone(unit: UnitOfWork, name: str) -> None:
    """CatalogError has-dependents for another statement of a query that an application's text gives.

    Putting the application would not bring it back: a text that stays is no change.
    """
    owner = query_owner(unit, name)
    if owner is not None:
        raise CatalogError(
            "has-dependents",
            f"query {quote(name)} belongs to application {quote(owner)}, whose text gives its statement",
            hint=f"change the text: PUT /v1/applications/{owner}, or leat application apply",
        )


def refuse_relation_alone(unit: UnitOfWork, fqn: Fqn) -> None:
    """CatalogError has-dependents for a relation that an application declares."""
    owner = relation_owner(unit, fqn)
    if owner is not None:
        raise CatalogError(
            "has-dependents",
            f"{fqn} belongs to application {quote(owner)}: it changes and goes with it",
            hint=f"change the text: PUT /v1/applications/{owner}, or DROP APPLICATION {quote(owner)}",
        )
