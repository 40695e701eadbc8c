"""Objects that others use cannot be deleted."""

from __future__ import annotations

from leatstream.errors import CatalogError, Fault, sentence


def refuse_dependents(what: str, dependents: list[str]) -> None:
    """Raise ``has-dependents`` naming each, if there are any."""
    if dependents:
        faults = [
            Fault(sentence(f"{d} depends on {what}"), "has-dependents", sqlstate="2BP01") for d in dependents
        ]
        others = " and others" if len(dependents) > 5 else ""
        raise CatalogError(
            "has-dependents",
            sentence(f"{what} is used by {', '.join(dependents[:5])}{others}"),
            faults=faults,
            hint="Drop those first.",
            dependents=dependents,
        )
