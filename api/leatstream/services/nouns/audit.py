"""The audit log: who reads it, and the refusals that are written to it."""

from __future__ import annotations

from datetime import timedelta

from leatstream.errors import RequestError
from leatstream.model.access import AuditEvent, Privilege
from leatstream.services.environment import Environment, Page, Principal
from leatstream.services.environment.audit import event_of
from leatstream.services.environment.authorization import require


def list_events(
    env: Environment,
    principal: Principal,
    page_size: int = 100,
    page_token: str | None = None,
    account: str | None = None,
) -> Page[AuditEvent]:
    """One page of the log, newest first.

    Args:
        env: the environment.
        principal: who asks; needs AUDIT.
        page_size: events per page, at least 1.
        page_token: of the page before; None = the newest.
        account: only events of this account.

    Raises:
        AccessError: permission-denied.
        RequestError: invalid-page-token.
    """
    require(principal, Privilege.AUDIT, "read the audit log")
    if page_token is not None and not (page_token.isascii() and page_token.isdecimal()):
        raise RequestError("invalid-page-token", "The page token is not one that this list gave.")
    before = int(page_token[:18]) if page_token is not None else None
    with env.open_unit(write=False) as unit:
        found = list(unit.audit.page(before=before, limit=page_size + 1, principal=account))
    items = found[:page_size]
    return Page(items, str(items[-1].number) if len(found) > page_size else None)


def forget_old_events(env: Environment) -> None:
    """Delete events that are older than ``keep_events``; the server calls it from time to time."""
    until = env.clock.now() - timedelta(seconds=env.settings.keep_events)
    with env.open_unit(write=False) as unit:
        oldest = unit.audit.oldest()
    if oldest is not None and oldest < until:
        with env.open_unit() as unit:
            unit.audit.delete_until(until)
            unit.commit()


def note_refusal(env: Environment, principal: Principal, method: str, path: str, code: str) -> None:
    """Write a refused request to the log.

    Args:
        env: the environment.
        principal: who asked.
        method: of the request.
        path: of the request.
        code: of the error.
    """
    with env.open_unit() as unit:
        event = event_of(principal, method.lower(), "request", path[:500], outcome="denied", code=code)
        unit.audit.add(event)
        unit.commit()
