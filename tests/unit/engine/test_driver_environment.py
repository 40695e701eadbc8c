"""Which of the server's variables drivers inherit."""

from __future__ import annotations

import pytest

from leatstream.engine.driver_environment import passed
from leatstream.settings import Settings


@pytest.mark.parametrize(
    "name", ["*", "LEAT*", "L*", "LEATSTREAM_CATALOG_URL", "LEATSTREAM_*", "a b", "1X", "A**"]
)
def test_a_setting_that_would_pass_too_much_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("LEATSTREAM_DRIVER_ENVIRONMENT", f"TZ,{name}")
    with pytest.raises(ValueError, match="driver_environment"):
        Settings()


def test_names_are_parted_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEATSTREAM_DRIVER_ENVIRONMENT", " AWS_*, MINE ,")
    assert Settings().driver_environment == ("AWS_*", "MINE")
    given = {"AWS_SECRET_ACCESS_KEY": "s", "MINE": "m", "MINE_TOO": "x", "AWSX": "x"}
    assert set(passed(given, Settings().driver_environment)) == {"AWS_SECRET_ACCESS_KEY", "MINE"}
    assert passed(given) == {}
