"""Which application a query or a declared relation belongs to, which changes and deletes it."""

from __future__ import annotations

from collections.abc import Callable

from leatstream.errors import CatalogError
from leatstream.model.names import Fqn, quote
from leatstream.model.registered import Application
from leatstream.ports import UnitOfWork


def query_owner(unit: UnitOfWork, name: str) -> str | None:
    """The application that a query belongs to; none that is being deleted."""
    return _owner(unit, lambda app: name in app.queries)


def relation_owner(unit: UnitOfWork, fqn: Fqn) -> str | None:
    """The application that declares a relation; none that is being deleted."""
    return _owner(unit, lambda app: str(fqn) in app.relations)


def _owner(unit: UnitOfWork, has: Callable[[Application], bool]) -> str | None:
    apps = unit.unfiltered.applications.page(limit=100_000)
    return next((app.name for app in apps if has(app) and not app.deleting), None)


def refuse_changed_alone(unit: UnitOfWork, name: str) -> None:
    """CatalogError has-dependents for another statement of a query that an application's text gives.

    Putting the application would not bring it back: a text that stays is no change.
    """
    owner = query_owner(unit, name)
    if owner is not None:
        raise CatalogError(
            "has-dependents",
            f"Query {quote(name)} belongs to application {quote(owner)}, whose text gives its statement.",
            hint=f"Change the text: PUT /v1/applications/{owner}, or leat application apply.",
        )


def refuse_relation_alone(unit: UnitOfWork, fqn: Fqn) -> None:
    """CatalogError has-dependents for a relation that an application declares."""
    owner = relation_owner(unit, fqn)
    if owner is not None:
        raise CatalogError(
            "has-dependents",
            f"{fqn} belongs to application {quote(owner)}, which changes and deletes it.",
            hint=f"Change the text: PUT /v1/applications/{owner}, or DROP APPLICATION {quote(owner)}.",
        )
