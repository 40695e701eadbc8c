"""Two attempts on one checkpoint, and no token to tell the old one: each record is written once all the same."""

from __future__ import annotations

import pytest
from fencing_race import race

TRIES = 4


@pytest.mark.spark
def test_of_two_attempts_on_one_checkpoint_one_writes(kafka_broker: str) -> None:
    races = race(kafka_broker, TRIES, seed=6, beside=TRIES)
    assert races.wrong == []
    assert races.ends.total() == TRIES
