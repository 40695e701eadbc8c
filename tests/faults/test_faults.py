"""Faults at seeded moments; then nothing is missing, and nothing is there twice that must not be.

Of this seed ten are one of every kind, and a second driver; ``bench/faults.py`` is the long campaign.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_run import run_faults


@pytest.mark.stack
@pytest.mark.timeout(1800)
def test_faults_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    outcome = run_faults(tmp_path, seed=896, count=10, per_second=200)
    assert outcome.wrong == []
    assert outcome.done.total() == 10
