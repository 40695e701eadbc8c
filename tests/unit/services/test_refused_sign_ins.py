"""How many events of the audit log refused sign-ins become."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from leatstream.model.access import AuditEvent
from leatstream.services.environment.refused_sign_ins import MOST, WINDOW, RefusedSignIns


def event(address: str = "1.2.3.4", detail: str = "expired") -> AuditEvent:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return AuditEvent(
        at=at,
        principal="",
        role="",
        operation="get",
        kind="sign_in",
        name="/v1/me",
        outcome="denied",
        address=address,
        detail=detail,
    )


def test_the_first_is_written_and_the_rest_of_the_minute_is_counted() -> None:
    found = RefusedSignIns()
    assert [one.count for one in found.take(event(), 0.0)] == [None]
    assert [found.take(event(), float(second)) for second in range(1, 10)] == [[]] * 9
    assert found.waiting(WINDOW - 1) == []
    assert [one.count for one in found.waiting(WINDOW)] == [9]
    assert found.waiting(2 * WINDOW) == []


def test_other_reasons_and_addresses_have_events_of_their_own() -> None:
    found = RefusedSignIns()
    for one in (event(), event(detail="revoked"), event(address="5.6.7.8")):
        assert found.take(one, 0.0) == [one]


def test_a_flood_goes_on_as_one_event_a_minute() -> None:
    found = RefusedSignIns()
    written = [one for second in range(600) for one in found.take(event(), second * 1.0)]
    assert len(written) == 10
    assert sum(one.count or 1 for one in written) + 60 == 600


def test_many_addresses_share_one_event() -> None:
    found = RefusedSignIns()
    several = (replace(event(address=f"a{n}"), principal=f"p{n}", token=f"t{n}") for n in range(10_000))
    written = [one for each in several for one in found.take(each, 0.0)]
    assert len(written) == MOST + 1
    assert (written[-1].address, written[-1].detail) == (None, "Several addresses or reasons.")
    assert (written[-1].principal, written[-1].token) == ("", None)
    assert [one.count for one in found.waiting(WINDOW)] == [10_000 - MOST - 1]
    assert found._windows.keys() == {("", "")}
    found.waiting(2 * WINDOW)
    assert not found._windows
