from __future__ import annotations

import os
import signal

import pytest

from leatstream.dev.signals import Ended, Signals


def test_the_first_signal_raises_and_the_second_does_not() -> None:
    with Signals():
        with pytest.raises(Ended) as caught:
            os.kill(os.getpid(), signal.SIGTERM)
        assert caught.value.number == signal.SIGTERM
        os.kill(os.getpid(), signal.SIGINT)


def test_nothing_is_raised_during_the_end() -> None:
    with Signals() as signals:
        signals.ignore()
        os.kill(os.getpid(), signal.SIGINT)


def test_a_held_back_signal_takes_effect_afterwards() -> None:
    steps = []

    def build(signals: Signals) -> None:
        with signals.held_back():
            # Not SIGINT: a shell's background job ignores that.
            os.kill(os.getpid(), signal.SIGTERM)
            steps.append("done")

    with Signals() as signals, pytest.raises(Ended):
        build(signals)
    assert steps == ["done"]


def test_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Signals():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
