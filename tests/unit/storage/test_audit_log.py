"""The audit log is filtered by the database, and a rare event is found without a look at all the others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from leatstream.model.access import AuditEvent, AuditFilter
from leatstream.storage.unit_of_work import SqlUnits

START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def event(number: int, outcome: str = "allowed", name: str = "demo") -> AuditEvent:
    return AuditEvent(
        at=START + timedelta(minutes=number),
        principal="ann",
        role="sysadmin",
        operation="create",
        kind="database",
        name=name,
        outcome=outcome,
    )


@pytest.mark.parametrize(
    ("only", "index"),
    [
        (AuditFilter(outcome="denied"), "ix_audit_events_outcome"),
        (AuditFilter(operation="delete", q="shop"), "ix_audit_events_operation"),
        (AuditFilter(kind="query"), "ix_audit_events_kind"),
        (AuditFilter(account="ann"), "ix_audit_events_principal"),
        (AuditFilter(since=START, until=START + timedelta(hours=1)), "ix_audit_events_at"),
    ],
)
def test_a_filter_has_an_index(units: SqlUnits, only: AuditFilter, index: str) -> None:
    asked = list[tuple[str, object]]()

    def note(_connection: object, _cursor: object, statement: str, values: object, *_: object) -> None:
        asked.append((statement, values))

    with units(write=False) as unit:
        connection = unit.audit._connection  # type: ignore[attr-defined]
        sa.event.listen(connection, "before_cursor_execute", note)
        assert list(unit.audit.page(only=only)) == []
        (statement, values) = asked[-1]
        steps = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    assert index in " ".join(str(step[-1]) for step in steps)


def test_the_columns_are_those_of_the_document(units: SqlUnits) -> None:
    """A hash is over the document; what is looked up by is made from it, of the events of before too."""
    with units() as unit:
        for number in range(5):
            unit.audit.add(event(number, "denied" if number == 3 else "allowed", f"Shop_{number}"))
        unit.commit()
    with units(write=False) as unit:
        assert [one.name for one in unit.audit.page(only=AuditFilter(outcome="denied"))] == ["Shop_3"]
        part = AuditFilter(q="shop_", since=START + timedelta(minutes=1), until=START + timedelta(minutes=3))
        assert [one.name for one in unit.audit.page(only=part)] == ["Shop_2", "Shop_1"]
        assert list(unit.audit.page(only=AuditFilter(q="shop%"))) == []
        assert unit.audit.broken() is None
