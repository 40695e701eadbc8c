"""The feed of changes as one principal sees it, from a place on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from leatstream.model.access import ORGANIZATION, Privilege
from leatstream.model.changes import ACCOUNTS, API_TOKEN, BEGINNING, ROLE, SAVEPOINT, Change
from leatstream.model.names import quote
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.authorization import READ, authorize
from leatstream.services.environment.desk import name_of
from leatstream.services.nouns.roles import sees_role

BATCH = 200  # changes in memory for one reader
MOST_KEPT = 100_000
_LOOK_BACK = 10 * BATCH  # changes that are looked at for the last ones that a reader sees
_TOO_OLD = "The position is too old, or of another catalog: changes may be missing."
_OTHER_RIGHTS = "The rights of the role have changed: it may see other objects now."


def shown_name(change: Change) -> str:
    """The full name of the object as SQL writes it."""
    plain = change.kind in (ROLE, *ACCOUNTS, API_TOKEN, SAVEPOINT)
    return quote(change.key) if plain else name_of(change.kind, change.key)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader wants of the feed.

    Attributes:
        kind: of the objects; None = all.
        name: full name of the object, or of a database or schema with what is in it; None = all.
    """

    kind: str | None = None
    name: str | None = None

    def fits(self, change: Change) -> bool:
        """Whether the change is wanted."""
        name = shown_name(change)
        return self.kind in (None, change.kind) and (
            self.name in (None, name) or name.startswith(f"{self.name}.")
        )


@dataclass(frozen=True, slots=True)
class Look:
    """What is new.

    Attributes:
        changes: oldest first.
        reset: why the reader must read the lists again; None = it has missed nothing.
        more: whether another look gives more at once.
    """

    changes: Sequence[Change] = ()
    reset: str | None = None
    more: bool = False


@dataclass(slots=True)
class Feed:
    """One reader's place in the feed.

    Attributes:
        env: the environment.
        who: the reader, with the rights of the last look.
        wanted: what it wants.
        position: id of the last change that it has passed.
        since: the last change of the grants of its roles. What was deleted before it, grants do not show.
        first: what the first look gives, before anything new.
    """

    env: Environment
    who: Principal
    wanted: Wanted
    position: str
    since: str
    first: Look = field(default_factory=Look)

    def has_news(self) -> bool:
        """Whether anything has changed behind the position, seen or not; cheap."""
        with self.env.open_unit(write=False) as unit:
            return unit.changes.newest() != self.position

    def look(self, who: Principal) -> Look:
        """The next changes that the reader sees; moves the position.

        Args:
            who: the reader, with its rights of now.
        """
        known, self.who = self.who, who
        with self.env.open_unit(write=False) as unit:
            if known.rights != who.rights:
                self.position, self.since = unit.changes.newest(), _since(unit, who)
                return Look(reset=_OTHER_RIGHTS)
            # One that reads very slowly may be overtaken by the deletion of old changes.
            if self.position != BEGINNING and not unit.changes.has(self.position):
                self.position = unit.changes.newest()
                return Look(reset=_TOO_OLD)
            found = unit.changes.after(self.position, BATCH)
            shown = _shown(unit, who, self.since, self.wanted, found)
        if found:
            self.position = found[-1].id
        return Look(shown, more=len(found) == BATCH)


def open_feed(
    env: Environment, principal: Principal, after: str | None, tail: int, wanted: Wanted = Wanted()
) -> Feed:
    """A place in the feed: behind a change that the reader knows, or at the end.

    Args:
        env: the environment.
        principal: who asks.
        after: id of the last change that it has read; None = it begins.
        tail: how many of the last changes a reader gets that begins.
        wanted: what it wants.
    """
    authorize(principal, READ, "events")
    with env.open_unit(write=False) as unit:
        newest, since = unit.changes.newest(), _since(unit, principal)
        if after is None:
            last = _last(unit, principal, since, wanted, tail) if tail else []
            return Feed(env, principal, wanted, newest, since, Look(last))
        if after != newest and not unit.changes.has(after):
            return Feed(env, principal, wanted, newest, since, Look(reset=_TOO_OLD))
        if since > after:
            return Feed(env, principal, wanted, newest, since, Look(reset=_OTHER_RIGHTS))
        return Feed(env, principal, wanted, after, since)


def forget_old_changes(env: Environment) -> None:
    """Delete changes that are older than ``keep_changes`` or too many; the server calls it now and then."""
    until = env.clock.now() - timedelta(seconds=env.settings.keep_changes)
    with env.open_unit(write=False) as unit:
        oldest = unit.changes.oldest()
        full = unit.changes.exceeds(MOST_KEPT)
    if full or (oldest is not None and oldest < until):
        with env.open_unit() as unit:
            unit.changes.delete_old(until, MOST_KEPT)
            unit.commit()


def _since(unit: UnitOfWork, who: Principal) -> str:
    return unit.changes.last_of_roles(sorted(who.rights.roles))


def _last(unit: UnitOfWork, who: Principal, since: str, wanted: Wanted, tail: int) -> list[Change]:
    """The last changes that the principal sees, among those that are looked at."""
    found: list[Change] = []
    place, left = None, _LOOK_BACK
    while left > 0 and len(found) < tail:
        part = unit.changes.before(place, BATCH)
        found += _shown(unit, who, since, wanted, part)
        if len(part) < BATCH:
            break
        place, left = part[-1].id, left - len(part)
    return found[:tail][::-1]


def _shown(
    unit: UnitOfWork, who: Principal, since: str, wanted: Wanted, changes: Sequence[Change]
) -> list[Change]:
    fitting = [change for change in changes if wanted.fits(change)]
    present = unit.changes.present(fitting) if fitting else {}
    return [
        change for change in fitting if _sees(who, change, since, present) or _sees_savepoint(unit, change)
    ]


def _sees_savepoint(unit: UnitOfWork, change: Change) -> bool:
    """Whether it is of a savepoint that exists, and that the caller sees: one who may operate its query."""
    found = unit.savepoints.find(change.key) if change.kind == SAVEPOINT else None
    return found is not None and found.meta.id == change.object_id


def _sees(who: Principal, change: Change, since: str, present: Mapping[str, tuple[str, str]]) -> bool:
    """Whether a principal sees a change: as it sees the object now, or saw it when it was deleted.

    Grants are by name, so those given after the deletion say nothing of who saw the object: it may even be
    another one's name by now.
    """
    rights = who.rights
    if change.kind == ROLE:
        return sees_role(who, change.key)
    if change.kind in (*ACCOUNTS, API_TOKEN):
        account = change.owner if change.kind == API_TOKEN else change.key
        return who.name == account or rights.may(Privilege.MANAGE_MEMBERS, ORGANIZATION)
    if rights.everything or rights.reads:
        return True
    if change.kind == SAVEPOINT:
        return change.owner in rights.roles
    if change.object_id in present:
        key, owner = present[change.object_id]
        return rights.sees(change.kind, name_of(change.kind, key), owner)
    granted = change.id > since and rights.sees(change.kind, shown_name(change), change.owner)
    return change.owner in rights.roles or granted
