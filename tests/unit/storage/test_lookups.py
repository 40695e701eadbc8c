"""What every request looks up: its statements are built once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from fakes import account, token_row

from leatstream.storage.unit_of_work import SqlUnits

NOW = datetime(2026, 11, 26, tzinfo=UTC)


def test_a_request_builds_no_statement_for_its_token_account_and_role(
    units: SqlUnits, monkeypatch: pytest.MonkeyPatch
) -> None:
    with units() as unit:
        for name in ("ann", "bob"):
            unit.accounts.add(account(name, "reader", NOW))
            unit.tokens.add(token_row(f"t_{name}", f"hash of {name}", name, "reader", NOW))
        unit.commit()

    def look_up(name: str) -> tuple[Any, ...]:
        with units(write=False) as unit:
            token, found = unit.find_token(f"hash of {name}"), unit.accounts.find(name)
            assert token is not None
            assert found is not None
            return (
                token.principal,
                found.name,
                unit.accounts.find_by_id(found.meta.id) == found,
                unit.roles.version(),
            )

    assert look_up("ann") == ("ann", "ann", True, (0, None, None, None))

    def refused(*_: Any) -> Any:
        raise AssertionError("a statement is built again")

    monkeypatch.setattr(sa, "select", refused)
    assert look_up("bob") == ("bob", "bob", True, (0, None, None, None))
