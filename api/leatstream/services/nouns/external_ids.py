"""External ids of roles that stores assume with the server's own credentials.

The owner of a role trusts the server by such an id. If users chose it, one of them could name the role and id
of another, and the server would assume that role for the wrong one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from leatstream.connectors.registry import connector_classes, with_secrets
from leatstream.connectors.settings import StoreSettings, generated_in, parts_in
from leatstream.errors import Faults
from leatstream.model.objects import Store


def with_generated(kind: str, config: Mapping[str, Any], old: Store | None) -> dict[str, Any]:
    """The settings of a store with the values that the server generates; those that it has stay.

    Args:
        kind: of the store.
        config: its settings without secrets, as they were given.
        old: the store as it is, if it exists.

    Raises:
        RequestError: validation, for each value that was chosen instead.
    """
    found, faults = connector_classes().get(kind), Faults()
    filled = with_secrets(config, {})
    if found is not None:
        _fill(
            found.Config,
            filled,
            old.config if old is not None and old.kind == kind else {},
            f"#/{kind}",
            faults,
        )
    faults.raise_if_any()
    return filled


def without_generated(store: Store) -> dict[str, Any]:
    """The settings of a store as its user gave them, such as for an export."""
    found, plain = connector_classes().get(store.kind), with_secrets(store.config, {})
    if found is not None:
        _strip(found.Config, plain)
    return plain


def _fill(
    model: type[StoreSettings], config: dict[str, Any], old: Mapping[str, Any], pointer: str, faults: Faults
) -> None:
    # A value that was chosen, for keys of the store's own, is none of the server's.
    kept = {name: old.get(name) for name in generated_in(model, old)}
    for name in generated_in(model, config):
        if config.get(name) is None:
            config[name] = kept.get(name) or f"leatstream:{secrets.token_hex(16)}"
        elif config[name] != kept.get(name):
            detail = f"{name}: the server generates it for a store without an access key."
            hint = f"Leave {name} out; the store shows it. Then put it into the trust policy of the role."
            faults.add("validation", detail, pointer=f"{pointer}/{name}", hint=hint)
    for name, part in parts_in(model, config):
        before = old.get(name)
        _fill(part, config[name], before if isinstance(before, Mapping) else {}, f"{pointer}/{name}", faults)


def _strip(model: type[StoreSettings], config: dict[str, Any]) -> None:
    for name in generated_in(model, config):
        config.pop(name, None)
    for name, part in parts_in(model, config):
        _strip(part, config[name])
