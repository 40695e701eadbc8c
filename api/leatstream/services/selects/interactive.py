"""Interactive SELECT: a warm driver runs it, its rows go to the one who asked, and nothing is left of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leatstream.errors import CatalogError, EngineError, JobError, LeatstreamError, fewer_rights
from leatstream.plan.job_spec import JobSpec
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Context, Environment, Principal, new_id
from leatstream.services.environment.authorization import READ, authorize
from leatstream.services.environment.selections import (
    LONGEST_SECONDS,
    UNREAD_SECONDS,
    Row,
    Selection,
)
from leatstream.services.planning.selects import PlannedSelect, plan_select
from leatstream.services.planning.specs import fresh_ref
from leatstream.services.queries.remedies import READ_IT
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql.statements import Select

PREFIX = "stm"
_BEAT = 1.0
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """What a reader wants at most: rows, bytes of their JSON, seconds in all, seconds without a row."""

    rows: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    idle: float | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The last thing a reader gets: why no row follows, and how many there were."""

    reason: str
    rows: int


@dataclass(frozen=True, slots=True)
class Waits:
    """There is no row yet: what is waited for, in words."""

    text: str


def is_selection(query_id: str | None) -> bool:
    """Whether what a driver was given is an interactive SELECT."""
    return bool(query_id) and str(query_id).startswith(f"{PREFIX}_")


def begin(
    env: Environment, principal: Principal, statement: Select, context: Context
) -> tuple[Selection, PlannedSelect]:
    """Plan a SELECT and hand it to a driver; its rows wait for ``read_rows``.

    Args:
        env: the environment.
        principal: who asks.
        statement: as it was read.
        context: database, schema and store of the session.

    Raises:
        RequestError: what is wrong with the statement.
        EngineError: engine-unavailable, when no driver may be had.
    """
    authorize(principal, READ, "statements")
    with env.planning() as unit:
        planned = plan_select(env, CatalogView(unit), statement, context)
    selection = Selection(new_id(PREFIX), principal.name, planned.job, statement.limit)
    env.selections.add(selection)
    try:
        driver = env.drivers.assign(selection.id)
    except Exception:
        selection.end()  # without a driver it would be kept for ever
        raise
    if driver is None:
        selection.end()
        raise EngineError(
            "engine-unavailable",
            f"No Spark driver is free for this SELECT: {env.drivers.why_none()}.",
            hint="End another SELECT or stop a query (LIST QUERIES), or raise LEATSTREAM_MAX_DRIVERS.",
        )
    selection.driver = driver
    env.changed.notify()
    return selection, planned


def read_rows(
    env: Environment, principal: Principal, selection_id: str, limits: Limits
) -> Iterator[Row | End | Waits]:
    """The rows as they come, what is waited for about once a second without any, and the end.

    Closing it ends the SELECT, unless ``kept`` keeps it for the same principal.

    Args:
        env: the environment.
        principal: who asks.
        selection_id: of the SELECT.
        limits: that end it.

    Raises:
        CatalogError: not-found, also for those of others; invalid-transition, when it has a reader.
        AccessError: permission-denied, the reader whose token has ended might do more.
        LeatstreamError: while iterating, what the job says when it fails.
    """
    selection = env.selections.find(selection_id)
    gone = CatalogError("not-found", "There is no SELECT of this id, or it has ended.")
    if selection is None or selection.owner != principal.name:
        raise gone
    with selection.changed:
        if selection.ended is not None and selection.problem is None and selection.kept_for is None:
            raise gone
        if selection.reading:
            raise CatalogError("invalid-transition", "The rows of this SELECT are being read already.")
        if selection.kept_for is not None and principal.rights.lack_some_of(selection.kept_for):
            raise fewer_rights(principal.role)
        selection.reading, selection.kept_for = True, None
        # Closing a generator that has not begun runs nothing of it: until then sweep ends it before long.
        selection.deadline = time.monotonic() + UNREAD_SECONDS
    return _rows(env, selection, limits)


@contextlib.contextmanager
def kept(env: Environment, selection_id: str, principal: Principal) -> Iterator[None]:
    """Close the rows meanwhile, and the SELECT waits for its next reader, as for its first one.

    Args:
        env: the environment.
        selection_id: of the SELECT.
        principal: its reader, with the rights that the next one must have too.
    """
    selection = env.selections.find(selection_id)
    if selection is None:
        yield
        return
    selection.kept_for = principal.rights
    yield
    with selection.changed:
        selection.reading, selection.deadline = False, time.monotonic() + UNREAD_SECONDS


def _rows(env: Environment, selection: Selection, limits: Limits) -> Iterator[Row | End | Waits]:
    most = min(limits.rows or selection.limit or _MOST_BYTES, selection.limit or _MOST_BYTES)
    last = time.monotonic()
    seconds = min(limits.seconds or LONGEST_SECONDS, LONGEST_SECONDS)
    selection.until = selection.until or last + seconds
    selection.deadline = selection.until
    rows: Sequence[Row] = ()
    sent = 0
    try:
        while True:
            # Asked first: what came in before the end is still given.
            over = selection.ended is not None
            rows, sent = selection.take(_BEAT) if selection.given < most else (), 0
            for row in rows:
                if selection.given_size + len(row.text) > (limits.bytes or _MOST_BYTES):
                    yield End("bytes", selection.given)
                    return
                yield row
                sent += 1
                selection.given, selection.given_size = (
                    selection.given + 1,
                    selection.given_size + len(row.text),
                )
                if selection.given >= most:
                    break
            if selection.given >= most:
                yield End("limit", selection.given)
                return
            now = time.monotonic()
            last = now if rows else last
            if over and not rows:
                if selection.problem is not None:
                    raise _failure(selection.problem)
                yield End("time" if now >= selection.deadline else "ended", selection.given)
                return
            if now >= selection.deadline:
                yield End("time", selection.given)
                return
            if limits.idle is not None and now - last >= limits.idle:
                yield End("idle", selection.given)
                return
            if not rows:
                yield Waits(_awaited(env, selection))
    finally:
        if selection.kept_for is None:
            stop(env, selection)
        else:
            selection.give_back(rows[sent:])


def _awaited(env: Environment, selection: Selection) -> str:
    if selection.given:
        return "waiting for the next row"
    if selection.heard is not None:
        return "waiting for the first row"
    starting = bool(selection.driver) and env.drivers.serving(selection.driver) == 0
    return "waiting for a driver, which is starting Spark" if starting else "waiting for a driver"


def _failure(problem: Mapping[str, Any]) -> LeatstreamError:
    code = str(problem.get("code"))
    family = JobError if code in JobError.kinds else EngineError
    detail = str(problem.get("shown") or problem.get("detail"))
    hint = f"{READ_IT} Write it behind the relation in FROM." if code == "undecodable-record" else None
    return family(code if code in family.kinds else "engine-unavailable", detail, hint=hint)


def stop(env: Environment, selection: Selection, problem: Mapping[str, Any] | None = None) -> None:
    """End it; its driver hears so at its next word, within a second.

    Args:
        env: the environment.
        selection: that is ended.
        problem: why; None = it was asked for.
    """
    selection.end(problem)
    env.changed.notify()


def sweep(env: Environment) -> None:
    """End what nobody reads, what is overdue and what has lost its driver; called once a second."""
    now = time.monotonic()
    for selection in env.selections.lasting():
        why = selection.overdue(now)
        if not selection.driver:
            continue
        if not env.drivers.is_alive(selection.driver):
            stop(env, selection, {"code": "driver-lost", "detail": "The driver of this SELECT has ended."})
        elif why == "its driver is silent":
            stop(
                env,
                selection,
                {"code": "driver-lost", "detail": "The driver of this SELECT does not answer."},
            )
        elif why is not None:
            stop(env, selection)
    env.selections.forget(lambda gone: _take_back(env, gone))


def _take_back(env: Environment, selection: Selection) -> None:
    """A driver that has not come back to its idle life by now does not obey."""
    if selection.driver:
        # One that cannot be ended now is a stray from here on, and tried again as such.
        with contextlib.suppress(EngineError):
            env.drivers.let_go(selection.driver, selection.id)


# The driver's side


def work_for(env: Environment, driver_id: str, selection_id: str) -> dict[str, Any] | None:
    """What an idle driver has to do for the SELECT that it was given; None lets it wait for other work.

    Args:
        env: the environment.
        driver_id: who asks.
        selection_id: of the SELECT.
    """
    selection = env.selections.find(selection_id)
    if selection is None or selection.ended is not None or selection.driver not in ("", driver_id):
        env.drivers.release(driver_id, selection_id)
        return None
    if selection.driver == "":  # it is only just being handed over
        return None
    if selection.heard is not None:
        stop(env, selection, {"code": "job-failed", "detail": "the SELECT ended by itself"})
        return None
    selection.heard = time.monotonic()
    with env.open_unit(write=False) as unit:
        spec = _fresh(unit, selection.job)
    spec = spec.model_copy(update={"query_id": selection.id, "attempt": 1, "fencing_token": selection.id})
    return {"kind": "select", "spec": spec.model_dump(mode="json")}


def _fresh(unit: UnitOfWork, job: JobSpec) -> JobSpec:
    """The job with the stores' settings as they are now (rotation)."""

    def sources() -> Iterator[Any]:
        for source in job.sources:
            store = fresh_ref(unit, source.store.name)
            yield source.model_copy(update={"store": store}) if store else source

    lookups = [
        one.model_copy(update={"store": fresh_ref(unit, one.store.name) or one.store}) for one in job.lookups
    ]
    return job.model_copy(update={"sources": list(sources()), "lookups": lookups})


def job_of_driver(env: Environment, unit: UnitOfWork, driver_id: str, selection_id: str) -> JobSpec | None:
    """The job whose secrets this driver may have.

    Args:
        env: the environment.
        unit: an open unit of work.
        driver_id: who asks.
        selection_id: of the SELECT.
    """
    selection = env.selections.find(selection_id)
    if selection is None or selection.driver != driver_id or selection.ended is not None:
        return None
    return _fresh(unit, selection.job)


def take_rows(env: Environment, driver_id: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Rows, or word that there are none, of a driver; None while there is no room for them.

    Args:
        env: the environment.
        driver_id: who calls.
        body: its rows.

    Raises:
        EngineError: ``fenced``, when nobody waits for them.
    """
    selection = env.selections.find(str(body.get("select", "")))
    if selection is None or selection.driver != driver_id:
        raise EngineError("fenced", "Nobody waits for these rows.")
    rows = [Row(str(op), str(text)) for op, text in body.get("rows") or []]
    if not selection.offer(int(body.get("sequence", 0)), rows):
        return None
    if body.get("error") is not None:
        stop(env, selection, dict(body["error"]))
    return {"directive": "continue" if selection.ended is None else "stop"}
