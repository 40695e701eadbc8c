"""Queries that are part of another one's job: their status, and when they make the job start again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from leatstream.model.objects import DesiredState, Meta, Query, QueryKind, QueryState, QueryStatus
from leatstream.services.queries.joint_jobs import awakened, led_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def query(name: str, generation: int = 1, **more: Any) -> Query:
    meta = Meta(
        id=name, generation=generation, created_at=NOW, updated_at=NOW, created_by="ann", owner="sysadmin"
    )
    return Query(
        meta=meta,
        name=name,
        kind=QueryKind.INSERT_INTO,
        sql="",
        statement_hash="",
        context={},
        sources=(),
        sink=f"d.public.{name}",
        **more,
    )


def status(state: str, attempt: int = 1, generation: int = 1, **more: Any) -> QueryStatus:
    driver = "d1" if state in ("starting", "running", "stopping") else None
    told = {"driver_id": driver, "observed_generation": generation} | more
    return QueryStatus(state=QueryState(state), attempt=attempt, **told)


def test_an_attempt_takes_up_what_is_there_when_it_begins() -> None:
    follower = query("f", 3, status=status("pending", generation=1))
    leader = query("l", status=status("starting", attempt=2, log_tail=("here",), metrics={"batch_id": 4}))
    after = led_status(follower, status("pending"), leader)
    assert (after.state, after.driver_id, after.attempt) == (QueryState.STARTING, "d1", 2)
    assert (after.observed_generation, after.log_tail, after.metrics) == (3, ("here",), {"batch_id": 4})
    running = replace(leader, status=status("running", attempt=2))
    changed = replace(follower, meta=replace(follower.meta, generation=4), status=after)
    assert led_status(changed, leader.status, running).observed_generation == 3, "the change is not in it yet"


@pytest.mark.parametrize(
    ("leader", "follower", "never"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_a_query_that_ran_alone_has_run_though_its_job_is_new(
    leader: bool, follower: bool, never: bool
) -> None:
    member = query("f", status=status("pending", never_ran=follower))
    leads = query("l", status=status("starting", attempt=2, never_ran=leader))
    assert led_status(member, status("pending"), leads).never_ran is never


def test_an_attempt_begins_without_what_goes() -> None:
    follower = query("f", deleting=True, status=status("pending"))
    leader = query("l", status=status("starting", attempt=2))
    after = led_status(follower, status("pending"), leader)
    assert (after.state, after.driver_id) == (QueryState.STOPPED, None)


@pytest.mark.parametrize(
    ("leader", "follower", "restarts"),
    [
        (status("running"), status("running"), False),
        (status("running"), status("running", generation=0), True),
        (status("running", generation=0), status("running", generation=0), False),
        (status("pending", generation=0), status("pending", generation=0), False),
        (status("failed"), status("failed"), False),
        (status("failed"), status("pending", generation=0), True),
        (status("completed"), status("pending", generation=0), True),
        (status("stopped"), status("stopped", generation=0), False),
    ],
)
def test_a_change_starts_the_job_again_once(
    leader: QueryStatus, follower: QueryStatus, restarts: bool
) -> None:
    found = awakened(query("f", status=follower), query("l", status=leader), NOW)
    assert (found is not None) is restarts
    if found is not None:
        assert found.status.observed_generation == 0 or found.status.state is QueryState.PENDING


def test_what_goes_is_let_go_of_while_the_job_is_wanted() -> None:
    going = query("f", deleting=True, status=status("running"))
    leader = query("l", status=status("running"))
    assert awakened(going, leader, NOW) is not None
    assert awakened(going, replace(leader, desired_state=DesiredState.STOPPED), NOW) is None
    assert awakened(going, replace(leader, deleting=True), NOW) is None
