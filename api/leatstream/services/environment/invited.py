"""People whom an invitation makes users, at the moment when one is taken."""

from __future__ import annotations

from datetime import datetime

from leatstream.errors import AccessError, Refused
from leatstream.model.access import Account, AccountKind, Invitation, LinkedIdentity
from leatstream.model.names import quote
from leatstream.ports import Identity, UnitOfWork
from leatstream.services.environment import Environment, Principal, new_meta
from leatstream.services.environment.audit import event_of


def is_invited(unit: UnitOfWork, who: Identity, now: datetime) -> bool:
    """Whether there is an invitation for a person's verified address.

    Args:
        unit: an open unit.
        who: the person.
        now: the time.
    """
    found = unit.invitations.find(who.mail) if who.mail is not None else None
    return found is not None and found.expires_at > now


def take_by_sign_in(
    env: Environment, who: Identity, request: str | None, address: str | None
) -> LinkedIdentity:
    """Take the invitation for a person's verified address.

    Args:
        env: the environment.
        who: the person.
        request: id of the request.
        address: of the client.

    Raises:
        AccessError: permission-denied, it ended a moment ago, or it cannot be taken.
    """
    with env.open_unit() as unit:
        linked = unit.linked_identities.find(who.name)
        if linked is not None:  # by another request of the same person
            return linked
        found = unit.invitations.find(who.mail) if who.mail is not None else None
        if found is None or found.expires_at <= env.clock.now():
            raise AccessError(
                "permission-denied", f"The invitation of {who.mail} has ended.", hint="Ask for a new one."
            ).noted_as(Refused(who.name))
        person = Principal(found.mail, found.default_role, token=who.token, request=request, address=address)
        admit(env, unit, found, person)
        linked = LinkedIdentity(
            meta=new_meta("lid", person, env.clock.now()),
            name=who.name,
            account=found.mail,
            scope=found.scope,
        )
        unit.linked_identities.add(linked)
        unit.audit.add(event_of(person, "create", "identity", who.name))
        unit.commit()
    return linked


def admit(env: Environment, unit: UnitOfWork, found: Invitation, person: Principal) -> None:
    """Make the user of an invitation, which is over then; the caller commits.

    Args:
        env: the environment.
        unit: an open unit.
        found: the invitation.
        person: who takes it.

    Raises:
        AccessError: permission-denied, there is such an account by now.
    """
    if unit.accounts.find(found.mail) is not None:
        raise AccessError(
            "permission-denied",
            f"There is an account {quote(found.mail)} by now, so its invitation cannot be taken.",
            hint="Ask an account manager for a token of this account.",
        ).noted_as(Refused(found.mail))
    unit.accounts.add(
        Account(
            meta=new_meta("acc", person, env.clock.now()),
            name=found.mail,
            kind=AccountKind.USER,
            roles=found.roles,
            default_role=found.default_role,
            comment=found.comment,
        )
    )
    unit.invitations.delete(found.meta.id)
    unit.audit.add(event_of(person, "accept", "invitation", found.mail))
    unit.audit.add(event_of(person, "create", "account", found.mail))
