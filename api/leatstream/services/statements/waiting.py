"""Waiting, within a request, until a query runs."""

from __future__ import annotations

import time

from leatstream.model.objects import Query, QueryState
from leatstream.services.environment.results import Run
from leatstream.services.queries import catalog as queries


def wait_running(run: Run, query: Query) -> bool:
    """Wait, up to the request's deadline, until the query's present version runs; whether it does."""
    seen = run.env.changed.value
    while True:
        found = queries.get_query(run.env, run.principal, query.name)
        # While the job of the version before still runs, this one does not.
        present = found.status.observed_generation >= found.meta.generation
        running = found.status.state in (QueryState.RUNNING, QueryState.COMPLETED) and present
        left = run.deadline - time.monotonic()
        if running or found.status.state is QueryState.FAILED or left <= 0:
            return running
        seen = run.env.changed.wait(seen, left)
