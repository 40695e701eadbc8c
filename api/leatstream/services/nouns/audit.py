"""The audit log: who reads it, and the refusals that are written to it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from leatstream.errors import AccessError, LeatstreamError, RequestError
from leatstream.model.access import ANY_EVENT, AuditEvent, AuditFilter, Privilege
from leatstream.services.environment import Environment, Page, Principal
from leatstream.services.environment.audit import event_of
from leatstream.services.environment.authorization import require


def list_events(
    env: Environment,
    principal: Principal,
    page_size: int = 100,
    page_token: str | None = None,
    only: AuditFilter = ANY_EVENT,
    after: int | None = None,
) -> Page[AuditEvent]:
    """One page of the log, newest first; with ``after`` what is behind that event, oldest first.

    Args:
        env: the environment.
        principal: who asks; needs AUDIT.
        page_size: events per page, at least 1.
        page_token: of the page before; None = the newest.
        only: which events; times without an offset are UTC.
        after: number of an event.

    Raises:
        AccessError: permission-denied.
        RequestError: invalid-page-token, also for one with ``after``.
    """
    require(principal, Privilege.AUDIT, "read the audit log")
    only = replace(only, since=_aware(only.since), until=_aware(only.until))
    if after is not None:
        if page_token is not None:
            raise RequestError(
                "invalid-page-token",
                "The log is read by page_token, newest first, or by after, oldest first.",
                hint="Leave one of them out; after is the number of the last event that you have.",
            )
        with env.open_unit(write=False) as unit:
            return Page(list(unit.audit.page(after=after, limit=page_size, only=only)), None)
    if page_token is not None and not (page_token.isascii() and page_token.isdecimal()):
        raise RequestError("invalid-page-token", "The page token is not one that this list gave.")
    before = int(page_token[:18]) if page_token is not None else None
    with env.open_unit(write=False) as unit:
        found = list(unit.audit.page(before=before, limit=page_size + 1, only=only))
    items = found[:page_size]
    return Page(items, str(items[-1].number) if len(found) > page_size else None)


def _aware(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def forget_old_events(env: Environment) -> None:
    """Delete events that are older than ``keep_events``; the server calls it from time to time."""
    until = env.clock.now() - timedelta(seconds=env.settings.keep_events)
    with env.open_unit(write=False) as unit:
        oldest = unit.audit.oldest()
    if oldest is not None and oldest < until:
        with env.open_unit() as unit:
            unit.audit.delete_until(until)
            unit.commit()


def in_use(principal: Principal, role: str) -> Principal:
    """The principal of a refusal, in the role that was in use.

    Args:
        principal: as it signed in.
        role: in use; empty = the one that it signed in with.
    """
    return replace(principal, role=role) if role else principal


def note_refused_sign_in(
    env: Environment, who: Principal, method: str, path: str, error: LeatstreamError
) -> None:
    """Write a refused sign-in to the log; many for one reason and from one address share an event.

    Args:
        env: the environment.
        who: request and address; the rest is unknown, or stands in the error.
        method: of the request.
        path: of the request.
        error: why.
    """
    refused = error.refused if isinstance(error, AccessError) else AccessError.refused
    who = replace(who, name=refused.account, role=refused.role, token=refused.token)
    reason = (refused.reason or error.detail)[:300]
    event = event_of(
        who, method.lower(), "sign_in", path[:500], outcome="denied", code=error.code, detail=reason
    )
    _write(env, env.refused_sign_ins.take(event, time.monotonic()))


def note_waiting_sign_ins(env: Environment) -> None:
    """Write what was counted of refused sign-ins; the server calls it from time to time."""
    _write(env, env.refused_sign_ins.waiting(time.monotonic()))


def _write(env: Environment, events: Sequence[AuditEvent]) -> None:
    if not events:
        return
    with env.open_unit() as unit:
        for event in events:
            unit.audit.add(event)
        unit.commit()


def note_refusal(env: Environment, principal: Principal, method: str, path: str, code: str) -> None:
    """Write a refused request to the log.

    Args:
        env: the environment.
        principal: who asked, in the role in use.
        method: of the request.
        path: of the request.
        code: of the error.
    """
    event = event_of(principal, method.lower(), "request", path[:500], outcome="denied", code=code)
    _write(env, [event])
