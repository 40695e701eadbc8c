"""The time from which on records are wanted, as brokers take it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from leatstream.services.relations.record_streams import records_from

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def since(at: datetime | None) -> int | None:
    return records_from(True, at, None, None).since


@pytest.mark.parametrize("wanted", [0, 1, 1_080_013_681_741, 1_767_225_600_123, 2_190_872_395_739])
def test_a_time_is_exact(wanted: int) -> None:
    at = EPOCH + timedelta(milliseconds=wanted)
    assert since(at) == wanted
    assert since(at.astimezone(timezone(timedelta(hours=5, minutes=30)))) == wanted
    assert since(at.replace(tzinfo=None)) == wanted


def test_a_time_before_all_others_means_all() -> None:
    early = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    assert (since(early), since(None)) == (0, None)
