"""Objects that others use cannot be deleted."""

from __future__ import annotations

from leatstream.errors import CatalogError, Fault


def refuse_dependents(what: str, dependents: list[str]) -> None:
    """Raise ``has-dependents`` naming each, if there are any."""
    if dependents:
        faults = [Fault(f"{d} depends on {what}", "has-dependents", sqlstate="2BP01") for d in dependents]
        raise CatalogError(
            "has-dependents",
            f"{what} is used by {', '.join(dependents[:5])}{' and others' if len(dependents) > 5 else ''}",
            faults=faults,
            hint="drop those first",
            dependents=dependents,
        )
