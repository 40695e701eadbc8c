"""Whether the role that owns a query may still read, call and write what the query does."""

from __future__ import annotations

from collections.abc import Iterator

from leatstream.errors import AccessError
from leatstream.model.access import Privilege
from leatstream.model.names import quote
from leatstream.model.objects import Query
from leatstream.ports import UnitOfWork
from leatstream.services.environment.authorization import rights_in
from leatstream.services.environment.desk import denied, grant_of, key_of, rows_of
from leatstream.services.environment.rights import Rights, usage_of
from leatstream.services.queries.joint_jobs import led

# Privilege, kind and name, and the object that is used, which needs nothing if it does not exist.
_Needed = tuple[Privilege, str, str, tuple[str, str]]


class OwnersRights:
    """Answers for one unit, which shows everything, which queries may run.

    Hundreds may be asked for at once: roles and owners are read once, and no documents.
    """

    def __init__(self, unit: UnitOfWork) -> None:
        self._unit = unit
        self._rights: dict[str, Rights] = {}
        self._owners: dict[tuple[str, str], str | None] = {}

    def revoked(self, query: Query) -> AccessError | None:
        """The refusal of a job whose owners have lost privileges since it was created; None if it may run.

        Args:
            query: whose job it is; the other queries of the job count too.
        """
        for one in (query, *led(self._unit, query)):
            missing = [] if one.deleting else self._missing(one)
            if missing:
                return _refusal(one.meta.owner, missing, query)
        return None

    def _missing(self, query: Query) -> list[tuple[Privilege, str]]:
        role = query.meta.owner
        rights = self._rights.get(role)
        if rights is None:
            rights = self._rights[role] = rights_in(self._unit, role)
        if rights.everything:
            return []
        lacking = [
            (privilege, f"{kind} {name}")
            for privilege, kind, name, used in dict.fromkeys(self._needed(query))
            # Most rights are granted: the owner is looked up for the others only.
            if not rights.may(privilege, kind, name)
            and not rights.may(privilege, kind, name, self._owner(kind, name))
            and self._owner(*used) is not None
        ]
        return list(dict.fromkeys(lacking))

    def _needed(self, query: Query) -> Iterator[_Needed]:
        for name in query.sources:
            yield from self._on_relation(Privilege.SELECT, name)
        if not query.kind.makes_sink:
            yield from self._on_relation(Privilege.INSERT, query.sink)
        for spec in query.job.get("functions") or ():
            name = quote(spec["function"])
            yield Privilege.USAGE, "function", name, ("function", name)

    def _on_relation(self, privilege: Privilege, name: str) -> Iterator[_Needed]:
        for needed in (*usage_of("relation", name), (privilege, "relation", name)):
            yield *needed, ("relation", name)

    def _owner(self, kind: str, name: str) -> str | None:
        if (kind, name) not in self._owners:
            found = rows_of(self._unit, kind).owners(limit=1, only=([key_of(kind, name)], []))
            self._owners[kind, name] = found[0][1] if found else None
        return self._owners[kind, name]


def _refusal(role: str, missing: list[tuple[Privilege, str]], job: Query) -> AccessError:
    """What is missing, and the statements that cure it."""
    joint = bool(job.job.get("leads"))
    again = "restart its application" if joint else f"RESTART QUERY {quote(job.name)}"
    grants = "; ".join(grant_of(role, *one) for one in missing)
    return AccessError("permission-denied", denied(role, missing).detail, hint=f"Run {grants}; then {again}.")
