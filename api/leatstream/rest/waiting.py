"""Long polls: an answer that waits until something is so."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Query
from starlette.concurrency import run_in_threadpool

from leatstream.model.objects import QueryState
from leatstream.rest.deps import DURATION_PATTERN, seconds
from leatstream.rest.loads import hold
from leatstream.services.environment import Environment

T = TypeVar("T")
_STATES = "|".join(state.value for state in QueryState)
LONGEST_WAIT = 60.0
# A change by another process does not notify this one: look again at least so often.
_LOOK_AGAIN = 1.0

WaitFor = Annotated[
    str | None,
    Query(
        pattern=f"^({_STATES})(,({_STATES})){{0,9}}$",
        description="Answer only when it is in one of these states, or the time is over.",
        examples=["running,failed"],
    ),
]
WaitTime = Annotated[
    str, Query(pattern=DURATION_PATTERN, description="How long to wait, such as `30s`; at most 60 s.")
]


async def look_until(
    env: Environment,
    look: Callable[[], T],
    state: Callable[[T], QueryState | None],
    wait_for: str | None,
    timeout: str,
) -> T:
    """What ``look`` gives, as soon as it is in one of the states or the time is over.

    Args:
        env: the environment.
        look: reads it; run in a thread.
        state: its state, None while the job of the version before still runs.
        wait_for: names of states, joined by commas; None does not wait.
        timeout: a duration.
    """
    wanted = {QueryState(word) for word in wait_for.split(",")} if wait_for is not None else set()
    if wanted:
        await hold(lambda loads: loads.waits)
    deadline = time.monotonic() + min(seconds(timeout), LONGEST_WAIT)
    while True:
        # Read the counter before the object: a change in between then wakes the wait at once.
        seen = env.changed.value
        found = await run_in_threadpool(look)
        left = deadline - time.monotonic()
        if wait_for is None or left <= 0 or state(found) in wanted:
            return found
        await env.changed.wait_async(seen, min(left, _LOOK_AGAIN))
