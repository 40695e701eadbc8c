from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from leatstream.model.objects import DesiredState, Meta, Query, QueryKind, QueryState, QueryStatus
from leatstream.services.environment import RuntimeSettings
from leatstream.services.queries.reconcile.reconciler import Action, Observed, decide
from leatstream.services.queries.retries import after_loss, backoff, seen_running

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = RuntimeSettings(checkpoint_root="/c", log_dir=Path("/l"), max_restarts=3, backoff_jitter=0)
META = Meta(id="qry_1", generation=2, created_at=NOW, updated_at=NOW, created_by="a", owner="sysadmin")


def query(state: QueryState, **status: object) -> Query:
    more = {"observed_generation": 2, "since": NOW, "heartbeat_at": NOW, **status}
    return Query(
        meta=META,
        name="q",
        kind=QueryKind.INSERT_INTO,
        sql="",
        statement_hash="",
        context={},
        sources=(),
        sink="d.s.r",
        status=QueryStatus(state=state, **more),  # type: ignore[arg-type]
    )


def act(query: Query, *, alive: bool = False, after: float = 0) -> Action:
    return decide(query, Observed(alive, NOW + timedelta(seconds=after)), SETTINGS)


RUNNING = query(QueryState.RUNNING, driver_id="d", attempt=1)


def test_a_pending_query_is_launched() -> None:
    assert act(query(QueryState.PENDING)) is Action.LAUNCH


def test_back_off_is_kept() -> None:
    waiting = query(QueryState.PENDING, next_attempt_at=NOW + timedelta(seconds=5))
    assert act(waiting) is Action.NONE
    assert act(waiting, after=6) is Action.LAUNCH


def test_a_pause_that_no_fault_makes_so_long_is_over() -> None:
    """The clock was ahead when the pause began, and has been put right."""
    ahead = NOW + timedelta(days=3)
    for state in (QueryState.LOST, QueryState.PENDING):
        assert act(query(state, next_attempt_at=ahead)) is Action.LAUNCH
    deleting = replace(query(QueryState.STOPPED, next_attempt_at=ahead), deleting=True)
    assert act(deleting) is Action.FINALIZE
    longest = NOW + timedelta(seconds=SETTINGS.backoff_maximum)
    assert act(query(QueryState.PENDING, next_attempt_at=longest)) is Action.NONE


def test_a_running_query_is_left_alone_until_it_is_silent() -> None:
    assert act(RUNNING, alive=True) is Action.NONE
    assert act(RUNNING, alive=True, after=SETTINGS.heartbeat_timeout + 1) is Action.END_DRIVER


def test_a_driver_that_warms_up_keeps_its_query() -> None:
    """A dozen that start at once may take minutes: their pool tells those that hang."""
    starting = query(QueryState.STARTING, driver_id="d", attempt=1)
    later = NOW + timedelta(seconds=SETTINGS.start_timeout + 1)
    assert decide(starting, Observed(True, later, NOW, serving=0.0), SETTINGS) is Action.NONE
    assert decide(starting, Observed(True, later, NOW, serving=20.0), SETTINGS) is Action.NONE
    over = SETTINGS.start_timeout + 1
    assert decide(starting, Observed(True, later, NOW, serving=over), SETTINGS) is Action.END_DRIVER


def test_silence_before_this_process_listened_does_not_count() -> None:
    now = NOW + timedelta(seconds=100)
    assert decide(RUNNING, Observed(True, now, now - timedelta(seconds=5)), SETTINGS) is Action.NONE
    assert decide(RUNNING, Observed(True, now, now - timedelta(seconds=50)), SETTINGS) is Action.END_DRIVER


def test_a_dead_driver_is_a_loss() -> None:
    assert act(RUNNING) is Action.MARK_LOST


def test_stop_is_asked_first_and_forced_after_the_grace() -> None:
    stopped = replace(RUNNING, desired_state=DesiredState.STOPPED)
    assert act(stopped, alive=True) is Action.MARK_STOPPING
    stopping = replace(stopped, status=replace(stopped.status, state=QueryState.STOPPING))
    assert act(stopping, alive=True) is Action.NONE
    assert act(stopping, alive=True, after=SETTINGS.stop_grace + 1) is Action.END_DRIVER
    assert act(stopping) is Action.MARK_STOPPED


def test_a_changed_query_is_taken_down_and_started_again() -> None:
    changed = replace(RUNNING, meta=replace(META, generation=3))
    assert act(changed, alive=True) is Action.MARK_STOPPING


def test_a_stopped_query_that_is_wanted_becomes_pending() -> None:
    assert act(query(QueryState.STOPPED)) is Action.MARK_PENDING


def test_a_failed_query_stays_failed_and_a_completed_one_completed() -> None:
    for state in (QueryState.FAILED, QueryState.COMPLETED):
        assert act(query(state)) is Action.NONE
        assert act(replace(query(state), desired_state=DesiredState.STOPPED)) is Action.MARK_STOPPED


def test_a_stopped_query_that_is_not_wanted_rests() -> None:
    assert act(replace(query(QueryState.STOPPED), desired_state=DesiredState.STOPPED)) is Action.NONE
    assert act(replace(query(QueryState.PENDING), desired_state=DesiredState.STOPPED)) is Action.MARK_STOPPED


def test_deleting_waits_for_the_driver() -> None:
    deleting = replace(RUNNING, deleting=True, desired_state=DesiredState.STOPPED)
    assert act(deleting, alive=True) is Action.MARK_STOPPING
    assert act(deleting) is Action.FINALIZE
    assert act(replace(query(QueryState.STOPPED), deleting=True)) is Action.FINALIZE


@pytest.mark.parametrize("state", list(QueryState))
@pytest.mark.parametrize("desired", list(DesiredState))
@pytest.mark.parametrize("driver", [None, "d"])
@pytest.mark.parametrize("alive", [True, False])
def test_every_combination_has_an_answer(
    state: QueryState, desired: DesiredState, driver: str | None, alive: bool
) -> None:
    subject = replace(query(state, driver_id=driver), desired_state=desired)
    action = act(subject, alive=alive and driver is not None)
    if action is Action.LAUNCH:
        assert desired is DesiredState.RUNNING
        assert driver is None


def test_losses_back_off_and_end_in_failed_with_the_first_cause() -> None:
    status = QueryStatus(state=QueryState.RUNNING, since=NOW, driver_id="d")
    first = {"code": "job-failed", "detail": "first", "retryable": True}
    later = {"code": "job-failed", "detail": "later", "retryable": True}
    delays = []
    status = after_loss(SETTINGS, status, NOW, "x", first)
    while status.state is not QueryState.FAILED:
        assert status.next_attempt_at is not None
        assert status.driver_id is None
        delays.append((status.next_attempt_at - NOW).total_seconds())
        # Real-time mode tells that it runs before any batch is done.
        status = replace(status, state=QueryState.STARTING, driver_id="d", attempt=status.attempt + 1)
        status = seen_running(status, NOW)
        assert (status.state, status.error) == (QueryState.RUNNING, first)
        status = after_loss(SETTINGS, status, NOW, "x", later)
    assert delays == [0.5, 1.0, 2.0]
    assert status.error == first
    assert "first" in (status.message or "")


@pytest.mark.parametrize(
    ("seconds", "metrics"), [(0, {"batch_id": 7, "input_rows_total": 10}), (61, {"batch_id": 0})]
)
def test_the_cause_is_forgotten_once_the_query_has_got_on(seconds: float, metrics: dict[str, int]) -> None:
    status = QueryStatus(state=QueryState.STARTING, since=NOW, restarts=2, driver_id="d", error={"code": "x"})
    status = seen_running(status, NOW)
    assert (status.error, status.restarts) == ({"code": "x"}, 2)
    status = seen_running(replace(status, metrics=metrics), NOW + timedelta(seconds=seconds))
    assert (status.state, status.error, status.restarts) == (QueryState.RUNNING, None, 0)


@pytest.mark.parametrize("first", ["state-unreadable", None])
def test_state_that_no_restart_can_load_is_damaged_in_the_end(first: str | None) -> None:
    unread = {
        "code": "job-failed",
        "condition": "state-unreadable",
        "detail": "state could not be loaded",
        "retryable": True,
    }
    died = {"code": "driver-lost", "detail": "it died", "retryable": True}
    status = after_loss(SETTINGS, RUNNING.status, NOW, "x", unread if first else died)
    assert status.error is not None
    assert status.error["code"] != "checkpoint-damaged"
    while status.state is not QueryState.FAILED:
        status = after_loss(SETTINGS, replace(status, state=QueryState.STARTING), NOW, "x", unread)
    assert status.error is not None
    assert (status.error["code"], status.error["retryable"]) == ("checkpoint-damaged", False)


def test_state_that_could_be_loaded_in_the_end_is_not_damaged() -> None:
    unread = {"code": "job-failed", "condition": "state-unreadable", "detail": "x", "retryable": True}
    status = after_loss(SETTINGS, RUNNING.status, NOW, "x", unread)
    while status.state is not QueryState.FAILED:
        status = after_loss(SETTINGS, replace(status, state=QueryState.STARTING), NOW, "the driver died")
    assert status.error == unread


def test_a_vanished_driver_leaves_the_query_lost_until_the_next_try() -> None:
    lost = after_loss(SETTINGS, RUNNING.status, NOW, "the driver's process ended")
    assert lost.state is QueryState.LOST
    assert lost.error is not None
    waiting = replace(RUNNING, status=lost)
    assert act(waiting) is Action.NONE
    assert act(waiting, after=1) is Action.LAUNCH


def test_a_loss_after_a_long_run_counts_from_one() -> None:
    since = NOW - timedelta(minutes=5)
    status = QueryStatus(state=QueryState.RUNNING, since=since, restarts=3, driver_id="d")
    assert after_loss(SETTINGS, status, NOW, "x").restarts == 1


def test_a_loss_after_committed_work_counts_from_one() -> None:
    worked = {"batch_id": 7, "input_rows_total": 10}
    status = QueryStatus(state=QueryState.RUNNING, since=NOW, restarts=3, driver_id="d", metrics=worked)
    assert after_loss(SETTINGS, status, NOW, "x").restarts == 1
    # Rows of a batch that is still at work, or no rows, are no work done; nor is that of an older attempt.
    for useless in ({"batch_id": None, "input_rows_total": 10}, {"batch_id": 7, "input_rows_total": 0}):
        again = after_loss(SETTINGS, replace(status, metrics=useless), NOW, "x")
        assert again.state is QueryState.FAILED
    assert after_loss(SETTINGS, replace(status, driver_id=None), NOW, "x").state is QueryState.FAILED


OUTAGE = {"code": "job-failed", "condition": "store-unreachable", "detail": "k is away", "retryable": True}


@pytest.mark.parametrize(
    "cause",
    [
        OUTAGE,
        {"code": "store-unreachable", "detail": "k is away"},
        {"code": "disk-full", "condition": "X", "detail": "the disk of k is away", "retryable": True},
    ],
)
def test_a_store_that_is_away_is_waited_for_as_long_as_it_takes(cause: dict[str, object]) -> None:
    status = QueryStatus(state=QueryState.STARTING, since=NOW, restarts=2, driver_id="d")
    delays = []
    for _ in range(50):
        status = after_loss(SETTINGS, status, NOW, "x", cause)
        assert (status.state, status.error, status.driver_id) == (QueryState.PENDING, cause, None)
        assert "k is away; try " in (status.message or "")
        assert status.next_attempt_at is not None
        delays.append((status.next_attempt_at - NOW).total_seconds())
    assert delays[:8] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert delays[-1] == 30.0
    # The store is back, and the job itself is ill: that row counts from its own beginning.
    ill = {"code": "job-failed", "detail": "ill", "retryable": True}
    row = []
    for _ in range(SETTINGS.max_restarts + 1):
        status = after_loss(SETTINGS, status, NOW, "x", ill)
        row.append(status.state)
    assert row == [QueryState.PENDING] * SETTINGS.max_restarts + [QueryState.FAILED]
    assert status.error == ill


def test_pauses_are_spread_by_chance_below_the_doubling_limit() -> None:
    spread = replace(SETTINGS, backoff_jitter=0.25)
    for tries, longest in ((1, 0.5), (2, 1.0), (4, 4.0), (40, 30.0)):
        pauses = {backoff(spread, tries) for _ in range(50)}
        assert len(pauses) > 1
        assert all(longest * 0.74 <= pause <= longest for pause in pauses)
