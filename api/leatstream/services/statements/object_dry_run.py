"""What putting an object would say, without putting it: for plans of deployments.

The put itself runs on a catalog whose changes are given up, and with connectors that only look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from leatstream.connectors.base import Connector
from leatstream.model.access import Scope
from leatstream.model.objects import Store, StoreState
from leatstream.services.environment import Context, Environment, Principal, Stored
from leatstream.services.environment.authorization import READ, authorize
from leatstream.services.nouns.stores import ask_store
from leatstream.services.staging.atomic import discarded
from leatstream.services.staging.catalog_view import Assumed
from leatstream.services.statements import applications
from leatstream.services.statements.dry_run import build_view

_EFFECTS = ("create_entity", "update_entity", "drop_entity", "write_records")


class _Looking:
    """A connector that changes nothing and does not say so."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector

    def __getattr__(self, name: str) -> Any:
        return (lambda *_, **__: None) if name in _EFFECTS else getattr(self._connector, name)


def check_put(
    env: Environment,
    principal: Principal,
    put: Callable[[Environment, Principal], None],
    assume: Mapping[str, Any] | None = None,
) -> None:
    """Put an object and give it up.

    Args:
        env: the environment.
        principal: who asks.
        put: puts it into the environment that it is given.
        assume: planned objects that count as existing (see ``catalog_view``).

    Raises:
        LeatstreamError: as putting it would raise.
    """
    authorize(principal, READ, "statements")
    env = replace(env, who=principal)
    # Nothing is kept, so a token that only reads may ask: pipelines plan pull requests with one. The
    # environment keeps its scope: such a token connects to no address that is not in the catalog.
    putting = replace(principal, given=replace(principal.rights, scope=Scope.WRITE))
    assumed = Assumed.read(assume)
    applications.assume_all(assumed, None)
    with env.planning() as unit:
        view = build_view(env, unit, assumed, Context())

        def work(inner: Environment) -> None:
            def connect(store: Store) -> Any:
                return _Looking(inner.connect(store))

            put(replace(inner, connect=connect), putting)

        discarded(env, work, view)


def try_store(env: Environment, put: Callable[[Environment], Stored[Store]]) -> Store:
    """Put a store, connect to it, and give it up: the store with the status that it would have.

    Rights are those of putting it, as secrets of the caller are sent to an address of the caller.

    Args:
        env: the environment.
        put: puts it into the environment that it is given.

    Raises:
        LeatstreamError: as putting it would raise; that it does not answer is its status.
    """

    def work(inner: Environment) -> Store:
        stored = put(inner)
        # One that would change, or is not ready, was asked when it was put.
        asked = stored.changed or stored.item.state is not StoreState.READY
        return stored.item if asked else ask_store(inner, stored.item)

    return discarded(env, work)
