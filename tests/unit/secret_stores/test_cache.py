"""Values are kept for a short time, and a secret store that is silent is not asked by everybody."""

from __future__ import annotations

import pytest
from own_clock import set_clock

from leatstream.errors import RequestError, SecretStoreError
from leatstream.model.outside_secrets import OutsideReference
from leatstream.services.environment import outside_secrets
from leatstream.services.environment.outside_secrets import OutsideSecrets

A, B = "secret://env/A", "secret://env/B"


class Provider:
    def __init__(self) -> None:
        self.asked = 0
        self.fault: SecretStoreError | None = None
        self.refusal: str | None = None

    def permits(self, reference: OutsideReference) -> str | None:
        return self.refusal

    def read(self, reference: OutsideReference) -> str:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return f"{reference.path} {self.asked}"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found = [1000.0]
    set_clock(monkeypatch, outside_secrets, monotonic=lambda: found[0])
    return found


def test_a_value_counts_for_a_while(now: list[float]) -> None:
    secrets = OutsideSecrets({"env": Provider()}, 30)
    assert secrets.known(A) is None
    assert [secrets.value(A), secrets.value(A)] == ["A 1", "A 1"]
    assert secrets.value(A, fresh=True) == "A 2"
    now[0] += 31
    assert secrets.known(A) == "A 2"
    assert secrets.value(A) == "A 3"


def test_a_failure_is_noted_and_forgets_the_value(now: list[float]) -> None:
    provider = Provider()
    secrets = OutsideSecrets({"env": provider}, 30)
    secrets.value(A)
    provider.fault = SecretStoreError("secret-missing", "It is not there.")
    with pytest.raises(SecretStoreError, match="not there"):
        secrets.value(A, fresh=True)
    look = secrets.look(A)
    assert (look.at is not None, look.error) == (True, "It is not there.")
    assert secrets.known(A) is None
    provider.fault = None
    assert secrets.value(A) == "A 3"
    assert secrets.look(A).error is None


def test_who_is_silent_is_left_alone_for_a_moment(now: list[float]) -> None:
    provider = Provider()
    secrets = OutsideSecrets({"env": provider}, 30)
    provider.fault = SecretStoreError("secret-store-unreachable", "It is silent.", hint="Wait.")
    for text in (A, B, A):
        with pytest.raises(SecretStoreError, match="silent") as caught:
            secrets.value(text)
        assert caught.value.retryable
    assert provider.asked == 1
    provider.fault = None
    now[0] += 4
    assert secrets.value(B) == "B 2"


def test_what_the_operator_withdraws_is_read_no_more(now: list[float]) -> None:
    provider = Provider()
    secrets = OutsideSecrets({"env": provider}, 0)
    secrets.value(A)
    provider.refusal = "Variable A is not permitted."
    with pytest.raises(SecretStoreError, match="not permitted") as caught:
        secrets.value(A)
    assert (caught.value.code, provider.asked) == ("secret-store-refused", 1)
    with pytest.raises(RequestError, match="not permitted"):
        secrets.permitted(A)
    with pytest.raises(RequestError, match="References to file are off"):
        secrets.permitted("secret://file/a")
