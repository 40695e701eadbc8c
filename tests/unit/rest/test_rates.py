"""The bucket of requests of an account."""

from __future__ import annotations

import pytest

from leatstream.errors import AccessError
from leatstream.rest import rates
from leatstream.rest.rates import BURST_SECONDS, Rates


class Watch:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def passed(made: Rates, account: str, most: int = 10_000) -> int:
    """How many requests pass until one is refused."""
    for count in range(most):
        try:
            made.take(account)
        except AccessError:
            return count
    return most


def test_a_quiet_account_may_send_many_and_then_as_many_as_come_back() -> None:
    clock = Watch()
    made = Rates(20, clock)
    assert passed(made, "ann") == 20 * BURST_SECONDS
    clock.at += 1.5
    assert passed(made, "ann") == 30
    clock.at += 1000
    assert passed(made, "ann") == 20 * BURST_SECONDS


def test_accounts_have_buckets_of_their_own() -> None:
    made = Rates(1, Watch())
    assert (passed(made, "ann"), passed(made, "bob")) == (10, 10)


@pytest.mark.parametrize(("rate", "seconds"), [(100.0, 1), (0.1, 10), (0.01, 100)])
def test_a_refusal_says_when_one_more_passes(rate: float, seconds: int) -> None:
    clock = Watch()
    made = Rates(rate, clock)
    passed(made, "ann")
    with pytest.raises(AccessError) as caught:
        made.take("ann")
    assert (caught.value.code, caught.value.status) == ("too-many-requests", 429)
    assert caught.value.retry_after == seconds
    clock.at += seconds
    made.take("ann")


def test_zero_is_no_bound() -> None:
    assert passed(Rates(0, Watch()), "ann", 5000) == 5000


def test_quiet_accounts_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_MANY", 3)
    clock = Watch()
    made = Rates(10, clock)
    for name in "abc":
        made.take(name)
    clock.at += BURST_SECONDS
    made.take("d")
    assert set(made._buckets) == {"d"}
