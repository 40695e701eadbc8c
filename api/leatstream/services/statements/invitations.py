"""INVITE USER and LIST INVITATIONS."""

from __future__ import annotations

from datetime import timedelta

from leatstream.model.access import Scope
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.pages import every
from leatstream.services.environment.results import Run, StatementResult
from leatstream.services.nouns import invitations
from leatstream.services.nouns.names import single
from leatstream.services.statements.result_tables import Table, text_columns
from leatstream.sql import access_statements as access
from leatstream.sql.property_values import PropertyReader

_KEYS = ("roles", "default.role", "scope", "lifetime.days")


def invite_user(run: Run, s: access.InviteUser) -> StatementResult:
    """INVITE USER; the result holds the link and its value, which are not shown again."""
    reader = PropertyReader(s.properties, "invitation")
    for key in reader.given:
        if key not in _KEYS:
            reader.unknown(key, _KEYS)
    scope, days = reader.choice("scope", tuple(Scope)), reader.number("lifetime.days")
    if days is not None and days > invitations.MOST_DAYS:
        reader.wrong("lifetime.days", f"An invitation lasts at most {invitations.MOST_DAYS} days.")
    held = [one.strip() for one in (reader.text("roles") or "").split(",") if one.strip()]
    default = reader.text("default.role")
    reader.faults.raise_if_any()
    made, value = invitations.create_invitation(
        run.env,
        run.principal,
        single(s.name),
        held,
        default,
        Scope(scope) if scope is not None else Scope.WRITE,
        timedelta(days=days or invitations.DAYS),
        s.comment,
    )
    row = [made.mail, ", ".join(made.roles), made.expires_at.isoformat()]
    return StatementResult(
        "invite_user",
        object={"noun": "invitation", "name": made.mail},
        columns=text_columns("mail", "roles", "expires_at", "link", "value"),
        rows=[[*row, invitations.link_of(run.env, value), value]],
    )


def listed_invitations(env: Environment, who: Principal) -> Table:
    """Rows of LIST INVITATIONS.

    Args:
        env: the environment.
        who: who asks.
    """
    names = ("mail", "roles", "default_role", "scope", "expires_at", "created_by", "comment")
    return text_columns(*names), [
        [
            one.mail,
            ", ".join(one.roles),
            one.default_role,
            one.scope.value,
            one.expires_at.isoformat(),
            one.meta.created_by,
            one.comment,
        ]
        for one in every(env, who, invitations.list_invitations)
    ]
