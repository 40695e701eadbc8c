"""``leat query top``: what every query does now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from own_clock import set_clock

from leatstream.cli import top as module
from leatstream.errors import IdentityError

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Service

LOST = {"code": "driver-lost", "detail": "the driver's process ended", "retryable": True}


@pytest.mark.parametrize(
    ("state", "message", "note"),
    [
        (
            "lost",
            "The driver's process ended. Restart 1 in 2 s.",
            "The driver's process ended. Restart 1 in 2 s.",
        ),
        ("failed", None, "the driver's process ended"),
        ("starting", "its driver starts Spark", "its driver starts Spark"),
        ("running", "no progress for 80 s: Kafka", "no progress for 80 s: Kafka"),
        ("running", None, None),
    ],
)
def test_a_failure_is_shown_while_it_is_the_reason(state: str, message: str | None, note: str | None) -> None:
    """It is kept until the query has got on, for the case that the next try ends too."""
    status = {"state": state, "message": message, "error": LOST, "restarts": 1}
    (row,) = module.figures([{"name": "q", "status": status}])
    assert dict(zip(module._HEADS, row, strict=True))["message"] == note


def test_an_issuer_that_is_unreachable_for_a_while_does_not_end_it(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: list[Any] = [IdentityError("issuer-unreachable", "The issuer does not answer."), []]
    client = service.client()

    def items(_path: str) -> Any:
        if not answers:
            raise KeyboardInterrupt
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(client, "items", items)
    set_clock(monkeypatch, module, sleep=lambda _: None)
    module._watch(client, 2.0, wide=True)
    assert answers == []
