"""Names of the server's objects for TAB in bash, zsh and fish. After an error TAB offers nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

_SECONDS = 3.0  # nobody waits longer for TAB
_MOST = 200


def object_names(context: typer.Context, incomplete: str) -> list[str]:
    """Names that fit the command's noun: ``leat store get <TAB>`` offers stores.

    Args:
        context: of the command.
        incomplete: what has been typed of the name.
    """
    noun = context.parent.info_name if context.parent else None
    return _safely(context, str(noun), incomplete)


def parent_names(context: typer.Context, incomplete: str) -> list[str]:
    """Names of what a list is of: ``leat entity list <TAB>`` offers stores."""
    noun = context.parent.info_name if context.parent else None
    return _safely(context, {"schema": "database", "entity": "store"}.get(str(noun), ""), incomplete)


def entity_names(context: typer.Context, incomplete: str) -> list[str]:
    """Names of entities, for a command that has no noun: ``leat print <TAB>``."""
    return _safely(context, "entity", incomplete)


def _safely(context: typer.Context, noun: str, incomplete: str) -> list[str]:
    try:
        found = list(_names(context, noun, incomplete))
    except Exception:
        # A traceback would be written into the line that is being typed.
        return []
    return [name for name in found if name.startswith(incomplete)]


def _names(context: typer.Context, noun: str, incomplete: str) -> Iterator[str]:
    from leatstream.cli.client import Client
    from leatstream.cli.connection import find_connection
    from leatstream.cli.nouns import NOUNS
    from leatstream.cli.sign_ins import signed_in
    from leatstream.model.names import quote

    connection = signed_in(find_connection(context.find_root().params.get("url")))
    client = Client(connection, timeout=_SECONDS)
    found = next(one for one in NOUNS if one.name == noun)
    if noun in _WITHIN:
        parent, mark = _WITHIN[noun]
        head, typed, _ = incomplete.partition(mark)
        if not typed:
            yield from (f"{name}{mark}" for name in _names(context, parent, head))
            return
        for item in _page(client, found.list_path(head)):
            # Entities are named as the store names them, everything else as in SQL.
            name = str(item["name"])
            yield f"{head}{mark}{name if noun == 'entity' else quote(name)}"
        return
    for item in _page(client, found.list_path(""), brief=found.brief):
        yield str(item["fqn"]) if "fqn" in item else quote(str(item["name"]))


# What is named below something else, and the mark between the two.
_WITHIN = {"schema": ("database", "."), "entity": ("store", "/")}


def _page(client: Any, path: str, *, brief: bool = False) -> list[dict[str, Any]]:
    params = {"page_size": _MOST, "view": "brief" if brief else None}
    items: list[dict[str, Any]] = client.call("GET", path, params=params)["items"]
    return items
