"""What the server says of itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from leatstream import __version__
from leatstream.connectors.capability_page import matrix
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.authorization import READ, authorize

API_VERSION = "v1"


def describe_server(env: Environment, principal: Principal) -> dict[str, Any]:
    """Name, versions, and the capability matrix of the store kinds."""
    authorize(principal, READ, "server")
    kinds = {k: asdict(c.capabilities) for k, c in sorted(env.connector_classes.items())}
    return {
        "name": "leatstream",
        "version": __version__,
        "api_version": API_VERSION,
        "features": ["graphql", "interval-join-stream-stream", "realtime-mode", "sink-property-inference"],
        "capabilities": kinds,
    }


def capability_matrix(env: Environment, principal: Principal) -> list[dict[str, Any]]:
    """A row for every kind of the product's scope; ``built`` is false where there is no connector yet."""
    authorize(principal, READ, "server")
    return matrix(env.connector_classes)


def readiness(env: Environment) -> dict[str, bool]:
    """Whether each part can do its work; the catalog is asked, a fault there counts as not ready."""
    try:
        with env.open_unit(write=False) as unit:
            unit.databases.page(limit=1)
        catalog = True
    except Exception:  # whatever the database driver raises, the answer is no
        catalog = False
    return {
        "catalog": catalog,
        "engine": env.drivers.ready(),
        "reconciler": not env.passes.stand_still(),
    }
