"""What a role may do after any sequence of changes, on two servers of one catalog."""

from __future__ import annotations

from access_machine import AccessMachine
from hypothesis import Phase, settings

TestClosure = AccessMachine.TestCase
TestClosure.settings = settings(
    max_examples=4, stateful_step_count=30, deadline=None, phases=[Phase.generate, Phase.shrink]
)
