"""What is done as the administrator while a server starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leatstream.errors import CatalogError, StackError
from leatstream.model.access import Scope, TokenRow
from leatstream.ports import Clock, OpenUnit
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.authorization import (
    ADMINISTRATOR,
    hash_token,
    mint_token,
    well_formed,
)
from leatstream.services.nouns.stores import put_store

_SYSADMIN = "sysadmin"
_TOKEN_VARIABLE = "LEATSTREAM_BOOTSTRAP_TOKEN"  # noqa: S105 - a name
_TOKEN_FILE = "token"  # noqa: S105 - a file name


def admin_token(open_unit: OpenUnit, clock: Clock, data_dir: Path, *, alone: bool = True) -> str:
    """The administrator's token: LEATSTREAM_BOOTSTRAP_TOKEN, else that of the last run, else a new one.

    Args:
        open_unit: opens a unit of the catalog.
        clock: for the time of its making.
        data_dir: holds the file with the token.
        alone: whether no other server of this catalog lives.

    Raises:
        StackError: ``part-failed``, the token is none, or none was given while other servers live (not
            ``alone``) that have another.
    """
    path = data_dir / _TOKEN_FILE
    given = os.environ.get(_TOKEN_VARIABLE, "")
    if given and not well_formed(given):
        raise StackError(
            "part-failed",
            f"{_TOKEN_VARIABLE} is not a leatstream token.",
            hint="Take the one of an earlier start, or leave it out and a new one is made.",
        )
    token = given or (path.read_text().strip() if path.exists() else "")
    if not well_formed(token):
        token, _, _ = mint_token()
    token_id = token.split("_")[1]
    with open_unit() as unit:
        if not (alone or given) and unit.find_token(hash_token(token)) is None:
            raise StackError(
                "part-failed",
                "Other servers of this catalog have another administrator's token than this one.",
                hint=f"Set {_TOKEN_VARIABLE} of every server to one token.",
            )
        write_private(path, token)
        unit.tokens.delete_of(ADMINISTRATOR)  # a token that was replaced is worth nothing any more
        unit.tokens.add(
            TokenRow(
                id=token_id,
                hash=hash_token(token),
                name=ADMINISTRATOR,
                principal=ADMINISTRATOR,
                role=_SYSADMIN,
                scope=Scope.ADMIN,
                created_at=clock.now(),
                created_by=ADMINISTRATOR,
            )
        )
        unit.commit()
    return token


def declare_embedded_store(
    env: Environment,
    name: str,
    kind: str,
    config: Mapping[str, Any],
    secrets: Mapping[str, str | None] | None = None,
) -> None:
    """Declare a part of the embedded stack as a store, so that the first statement has somewhere to go.

    Args:
        env: what services work with.
        name: the store's name.
        kind: store kind, such as ``kafka``.
        config: its settings without secrets.
        secrets: dotted field path to value.
    """
    principal = Principal(ADMINISTRATOR, _SYSADMIN)
    try:
        put_store(env, principal, name, kind, config, secrets or {})
    except CatalogError:  # a store of another kind has taken the name: the user's word counts
        return


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone reads; it is there whole or not at all."""
    temporary = path.with_suffix(".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    temporary.replace(path)
