"""``leat secret create`` and ``apply``."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

REFERENCE = "secret://vault/kv/leat/kafka#password"


def test_a_secret_by_reference(leat: Leat, service: Service) -> None:
    service.answer("PUT", "/v1/secrets/pw", {"name": "pw", "reference": REFERENCE})
    result = leat("secret", "create", "pw", "--reference", REFERENCE, "--comment", "Kafka")
    assert (result.status, REFERENCE in result.out) == (0, True)
    assert service.last_body == {"reference": REFERENCE, "comment": "Kafka"}
    assert service.requests[-1].headers["if-none-match"] == "*"


def test_a_value_comes_from_standard_input(
    leat: Leat, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.answer("PUT", "/v1/secrets/pw", {"name": "pw"})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"s3cret\n")))
    assert leat("secret", "create", "pw").status == 0
    assert service.last_body == {"reference": None, "comment": None, "value": "s3cret"}


def test_a_rotated_secret_is_applied(leat: Leat, service: Service) -> None:
    service.answer("POST", "/v1/secrets/pw:apply", {"stores": ["k"], "queries": ["q"], "left": 0}, 202)
    result = leat("secret", "apply", "pw")
    assert result.status == 0
    assert "q" in result.out
