"""What happened to the objects of the catalog, as the feed of changes shows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, get_args

from leatstream.model.access import AccountKind

ROLE = "role"
ACCOUNTS = tuple(kind.value for kind in AccountKind)
API_TOKEN, SAVEPOINT = "api_token", "savepoint"
BEGINNING = "evt_" + "0" * 28  # sorts before the id of every change
ChangeKind = Literal[
    "database",
    "schema",
    "relation",
    "store",
    "secret",
    "schema_registry",
    "descriptor_source",
    "function_source",
    "function",
    "query",
    "application",
    "role",
    "user",
    "service_account",
    "api_token",
    "savepoint",
]
CHANGE_KINDS: tuple[str, ...] = get_args(ChangeKind)


class ChangeType(StrEnum):
    """What a change was: to the definition of an object, or to the state of a query or store."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    STATE = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One entry of the feed.

    Attributes:
        id: opaque; later changes have greater ones.
        kind: one of ``CHANGE_KINDS``.
        key: of the object in the catalog: its exact name.
        object_id: differs from that of others that have or had its name.
        owner: the role that owned it after the change; of a deleted one, before. Of a token, its account.
        generation: after the change; of a deleted one, the last. Tokens have none: 1.
        state: after the change, of what has one.
        message: why it is in this state, or what is wrong.
        error: code of the failure.
    """

    id: str
    at: datetime
    type: ChangeType
    kind: str
    key: str
    object_id: str
    owner: str
    generation: int
    state: str | None = None
    message: str | None = None
    error: str | None = None
