"""The calls of drivers: they pull work, send heartbeats and receive directives.

docs/driver-protocol.md describes the exchange.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from leatstream.errors import AccessError, EngineError, sentence
from leatstream.model.bounds import LOG_LINES
from leatstream.model.objects import Query, QueryProgress, QueryState
from leatstream.plan.job_spec import ChangeFeed, JobSpec, MemberSpec, SinkSpec, SourceSpec
from leatstream.plan.logical import AnalysisFailure, AnalyzedColumn
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, reader_prefix, rows_version, view_table
from leatstream.services.nouns.secret_values import Held, held, opened, uses_outside
from leatstream.services.planning.run_time_places import in_users_words
from leatstream.services.planning.specs import fresh_ref
from leatstream.services.queries.joint_jobs import leader_of, led
from leatstream.services.queries.pulse import as_seen, with_pulse
from leatstream.services.queries.remedies import way_out
from leatstream.services.queries.replace.hand_over import taking_over_of
from leatstream.services.queries.retries import after_loss, ended, seen_running
from leatstream.services.queries.save import keep_query
from leatstream.services.queries.shared_drivers import (
    APART,
    FIRST_BATCH,
    HANDED,
    STARTS,
    fills_memory,
    set_apart,
)
from leatstream.services.queries.skipping import skipped_of
from leatstream.services.selects import interactive

_SAMPLE_SECONDS = 15.0
_TERMINAL = {"stopped", "failed", "completed"}
_REFUSED_LOGIN = frozenset({"store-auth-failed", "registry-auth-failed"})


def authenticate_driver(env: Environment, driver_id: str, token: str) -> None:
    """Check a driver's own token; AccessError unauthenticated.

    Args:
        env: the environment.
        driver_id: who calls.
        token: the one that it sent.
    """
    if not env.drivers.authenticate(driver_id, token):
        raise AccessError("unauthenticated", "This driver is not known here.")


def poll(env: Environment, driver_id: str, report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Work for a driver, or None for now; never blocks.

    Args:
        env: the environment.
        driver_id: who calls.
        report: its state.
    """
    env.drivers.report(driver_id, str(report.get("state", "idle")), int(report.get("pid", 0)))
    env.drivers.note_use(driver_id, report.get("use") or {})
    role = env.drivers.role(driver_id)
    if role is None:
        return {"kind": "exit"}
    if report.get("state") != "idle":
        return None
    if role == "analyzer":
        request = env.analyzer.take(driver_id)
        if request is None:
            return None
        views = [{"name": v.name, "ddl": v.ddl} for v in request.views]
        shapes = [{"name": f.name, "returns": f.returns} for f in request.functions]
        work: dict[str, Any] = {
            "kind": "analyze",
            "id": request.id,
            "views": views,
            "sql": request.sql,
        }
        if request.places:
            work["places"] = [[first, last] for first, last in request.places]
        return {**work, "functions": shapes} if shapes else work
    if role == "shared":
        return _one_more(env, driver_id, report.get("running") or {})
    query_id = env.drivers.assigned(driver_id)
    if query_id is None:
        return None
    if interactive.is_selection(query_id):
        return interactive.work_for(env, driver_id, query_id)
    with env.open_unit(write=False) as unit:
        query = unit.queries.find_by_id(query_id)
        if query is None:
            return {"kind": "exit"}
        if query.status.driver_id != driver_id:
            return None
        spec = build_spec(env, unit, query)
    return {"kind": "run", "spec": spec.model_dump(mode="json")}


def _one_more(env: Environment, driver_id: str, running: Mapping[str, int]) -> dict[str, Any] | None:
    """An attempt that a shared driver was given and does not have yet.

    What it reported before this call began may be over by now: the attempt's number shows that.
    """
    for query_id in env.drivers.shares(driver_id):
        with env.open_unit(write=False) as unit:
            query = unit.queries.find_by_id(query_id)
            if query is None or not _runs(query, driver_id):
                continue
            if running.get(query_id, 0) < query.status.attempt:
                return {"kind": "run", "spec": build_spec(env, unit, query).model_dump(mode="json")}
    return None


def build_spec(env: Environment, unit: UnitOfWork, query: Query) -> JobSpec:
    """The JobSpec of the query's present attempt; store settings are read afresh (rotation).

    Args:
        env: the environment.
        unit: an open unit of work.
        query: whose job it is.
    """
    spec = JobSpec.model_validate(query.job)

    root = env.settings.checkpoint_root.rstrip("/")
    checkpoint = f"{root}/queries/{query.meta.id}/g{query.checkpoint_generation}"
    sources = [
        s.model_copy(
            update={
                "store": fresh_ref(unit, s.store.name) or s.store,
                "feed": _feed(query, s, index, checkpoint),
                **_begin(query, s),
                "skip": skipped_of(query, s.entity),
            }
        )
        for index, s in enumerate(spec.sources)
    ]
    lookups = [s.model_copy(update={"store": fresh_ref(unit, s.store.name) or s.store}) for s in spec.lookups]
    joined = [(one, JobSpec.model_validate(one.job)) for one in led(unit, query) if not one.deleting]
    return spec.model_copy(
        update={
            "query_id": query.meta.id,
            "query_name": query.name,
            "generation": query.meta.generation,
            "attempt": query.status.attempt,
            "fencing_token": fencing_token(query),
            "checkpoint": checkpoint,
            "excerpts": env.settings.error_excerpts,
            "places": [],
            "sources": sources,
            "lookups": lookups,
            "sink": _sink(env, unit, query, spec.sink, query.checkpoint_generation),
            "members": [_member(env, unit, one, part, query.checkpoint_generation) for one, part in joined],
            "max_offsets_per_trigger": min(
                part.max_offsets_per_trigger for part in (spec, *(p for _, p in joined))
            ),
            **taking_over_of(unit, query, sources),
        }
    )


def _sink(env: Environment, unit: UnitOfWork, query: Query, sink: SinkSpec, generation: int) -> SinkSpec:
    """Where a query's rows go; ``generation`` is that of the checkpoint of its job."""
    sink = sink.model_copy(update={"store": fresh_ref(unit, sink.store.name) or sink.store})
    if sink.stored_view:
        return sink.model_copy(update={"version": rows_version(query)})
    if sink.view is None:
        return sink
    relation = unit.relations.find(query.sink)
    names = {column.name for column in sink.columns}
    known = relation.indexes if relation is not None else ()
    indexes = {i.name: list(i.columns) for i in known if names.issuperset(i.columns)}
    place = {"table": view_table(query), "generation": generation, "indexes": indexes}
    view = sink.view.model_copy(update={**place, "database": env.views.database})
    return sink.model_copy(update={"view": view})


def _member(env: Environment, unit: UnitOfWork, query: Query, spec: JobSpec, generation: int) -> MemberSpec:
    """Another query that is part of the job; ``generation`` is that of the job's checkpoint."""
    return MemberSpec(
        query_id=query.meta.id,
        query_name=query.name,
        sql=spec.sql,
        sink=_sink(env, unit, query, spec.sink, generation),
        delivery=spec.delivery,
    )


def _begin(query: Query, source: SourceSpec) -> dict[str, Any]:
    """Where the source is first read, if a person has said it for this checkpoint."""
    start = query.start
    if start is None or start.checkpoint_generation != query.checkpoint_generation:
        return {}
    return {
        "starting_position": start.position,
        "starting_timestamp_ms": start.timestamp_ms,
        "starting_offsets": dict(start.offsets.get(source.relation, {})),
    }


def _feed(query: Query, source: SourceSpec, index: int, checkpoint: str) -> ChangeFeed | None:
    """Whose changes are read, under names of the query's own, which a new checkpoint creates again."""
    if source.feed is None:
        return None
    name = f"{reader_prefix(query)}g{query.checkpoint_generation}_{index}"
    return source.feed.model_copy(update={"name": name, "directory": f"{checkpoint}/changes/{source.view}"})


def fencing_token(query: Query) -> str:
    """Names one attempt by one driver; a heartbeat with another is refused."""
    text = f"{query.meta.id}:{query.status.attempt}:{query.status.driver_id}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def analysis_result(env: Environment, driver_id: str, request_id: str, body: Mapping[str, Any]) -> None:
    """Take an analyzer's answer to a request that it was given.

    Args:
        env: the environment.
        driver_id: who calls.
        request_id: of the analysis.
        body: what the analyzer answered.

    Raises:
        AccessError: permission-denied, the driver is no analyzer.
    """
    if env.drivers.role(driver_id) != "analyzer":
        raise AccessError("permission-denied", "This driver is no analyzer.")
    failure = body.get("failure")
    if failure is not None:
        env.analyzer.complete(driver_id, request_id, AnalysisFailure.read(failure))
        return
    columns = [AnalyzedColumn(c["name"], c["type"], bool(c["nullable"])) for c in body.get("columns", [])]
    env.analyzer.complete(driver_id, request_id, columns)


def resolve_secrets(
    env: Environment, driver_id: str, references: Sequence[str], query_id: str | None = None
) -> dict[str, str]:
    """Secret values for a driver, only those of the query it runs; a shared one says for which.

    Args:
        env: the environment.
        driver_id: who calls.
        references: of the values wanted.
        query_id: of a driver with several jobs, the one meant.
    """
    query_id = env.drivers.assigned(driver_id) or query_id
    with env.open_unit(write=False) as unit:
        spec = _spec_of(env, unit, driver_id, query_id)
        allowed = {reference for store in spec.stores() for reference in store.references()}
        values: dict[str, str] = {}
        found: list[Held] = []
        databases = {s.view.database.secret for s in spec.sinks() if s.view and s.view.database}
        for reference in references:
            password = env.views.password if reference in databases else None
            if password is not None:
                values[reference] = password
                continue
            one = held(unit, reference) if reference in allowed else None
            if one is None:
                raise AccessError("permission-denied", "This driver may not read that secret.")
            found.append(one)
    # What is in the secret store now: the last attempt may have failed for an old value.
    return values | {one.reference: opened(env, one, fresh=True) for one in found}


def function_sources(
    env: Environment, driver_id: str, digests: Sequence[str], query_id: str | None = None
) -> dict[str, str]:
    """Texts of function sources for a driver, only those of the query or SELECT it runs.

    Args:
        env: the environment.
        driver_id: who calls.
        digests: of the sources wanted.
        query_id: of a driver with several jobs, the one meant.
    """
    query_id = env.drivers.assigned(driver_id) or query_id
    with env.open_unit(write=False) as unit:
        spec = _spec_of(env, unit, driver_id, query_id)
        query = unit.queries.find_by_id(query_id) if query_id else None
        found = dict(query.code) if query is not None else {}
        for function in spec.functions:
            source = unit.function_sources.find(function.source)
            if source is not None:
                found.setdefault(source.digest, source.content)
        allowed = {function.digest for function in spec.functions}
    return {digest: found[digest] for digest in digests if digest in allowed and digest in found}


def _spec_of(env: Environment, unit: UnitOfWork, driver_id: str, query_id: str | None) -> JobSpec:
    if query_id is not None and interactive.is_selection(query_id):
        selected = interactive.job_of_driver(env, unit, driver_id, query_id)
        if selected is not None:
            return selected
    query = unit.queries.find_by_id(query_id) if query_id else None
    if query is None or not _runs(query, driver_id):
        raise EngineError("fenced", "This driver runs no query.")
    return build_spec(env, unit, query)


def _runs(query: Query, driver_id: str) -> bool:
    """Whether the driver was given this query; one that is part of another's job it does not know as such."""
    return query.status.driver_id == driver_id and leader_of(query) is None


def heartbeat(env: Environment, driver_id: str, report: Mapping[str, Any]) -> dict[str, Any]:
    """Take a driver's word on its query and answer what is wanted: continue, stop or stay.

    Args:
        env: the environment.
        driver_id: who calls.
        report: state and figures of its job.

    Raises:
        EngineError: ``fenced``, if another attempt has taken over.
    """
    with env.open_unit() as unit:
        query = unit.queries.find_by_id(str(report.get("query_id", "")))
        if (
            query is None
            or not _runs(query, driver_id)
            or query.status.attempt != report.get("attempt")
            or fencing_token(query) != report.get("fencing_token")
        ):
            raise EngineError("fenced", "Another attempt has taken over this query, or it is gone.")
        env.drivers.note_use(driver_id, report.get("use") or {})
        updated = _observe(env, unit, query, report)
        updated = _sampled(unit, updated, env.clock.now())
        keep_query(unit, query, updated, env.clock.now())
        if report.get("state") in _TERMINAL and env.drivers.role(driver_id) == "shared":
            # Before anybody can see that it may start again, perhaps in the same driver.
            env.drivers.let_go(driver_id, query.meta.id)
        unit.commit()
    stays = _stays(env, driver_id, query, report)
    if stays or updated.status.state is not query.status.state:
        env.changed.notify()
    return {
        "directive": "stay" if stays else _directive(updated),
        # A replacement gives names to others, and their jobs go on.
        "query_name": updated.name,
        # Its driver may have been started by a server with another limit; leases go by this one's.
        "orphan_seconds": env.settings.orphan_seconds,
    }


def _stays(env: Environment, driver_id: str, query: Query, report: Mapping[str, Any]) -> bool:
    """Whether a driver that has reported its query's end is kept for another one.

    Not after a failure: whatever has caused that may still be there.
    """
    if report.get("state") not in ("stopped", "completed") or not report.get("free"):
        return False
    return env.drivers.keep(driver_id, query.meta.id)


def _sampled(unit: UnitOfWork, query: Query, now: datetime) -> Query:
    """Store the job's reports at intervals, so that users see its history."""
    status = query.status
    before = status.progress_at
    if not status.metrics or (before is not None and (now - before).total_seconds() < _SAMPLE_SECONDS):
        return query
    metrics = as_seen(query, now).status.metrics
    progress = QueryProgress(at=now, attempt=status.attempt, metrics=metrics)
    unit.query_log.add_progress(query.meta.id, progress)
    return replace(query, status=replace(status, progress_at=now))


def _directive(query: Query) -> str:
    stopping = query.status.state is QueryState.STOPPING
    return "continue" if query.is_wanted and _current(query) and not stopping else "stop"


def _current(query: Query) -> bool:
    """Whether the job runs what the user wants now; an older one's end says nothing of the new one."""
    return query.status.observed_generation == query.meta.generation


def _observe(env: Environment, unit: UnitOfWork, query: Query, report: Mapping[str, Any]) -> Query:
    now = env.clock.now()
    state = str(report.get("state", ""))
    lines = [str(line)[:2000] for line in report.get("log") or []]
    status = replace(
        query.status,
        heartbeat_at=now,
        metrics=with_pulse(report.get("progress") or query.status.metrics, report.get("pulse"), now),
        log_tail=(*query.status.log_tail, *lines)[-LOG_LINES:],
        reached=report.get("reached") if state in _TERMINAL else None,
    )
    if state in ("running", "completed") or status.metrics.get("batch_id") is not None:
        status = replace(status, never_ran=False)
    if state in _TERMINAL:
        return replace(query, status=_terminal(env, unit, query, status, state, report))
    if state == "running":
        status = seen_running(status, now)
    elif state == "starting" and status.message in (STARTS, HANDED):
        status = replace(status, message=FIRST_BATCH if report.get("first_batch") else HANDED)
    return replace(query, status=status)


def _terminal(
    env: Environment, unit: UnitOfWork, query: Query, status: Any, state: str, report: Mapping[str, Any]
) -> Any:
    now = env.clock.now()
    wanted = query.is_wanted
    if wanted and not _current(query):
        return ended(status, QueryState.PENDING, now)
    if state == "completed" and wanted:
        return replace(ended(status, QueryState.COMPLETED, now), error=None, restarts=0, outages=0)
    if state in ("stopped", "completed"):
        if not wanted:
            return replace(status, state=QueryState.STOPPING, since=status.since or now)
        return ended(status, QueryState.PENDING, now)
    error = dict(report.get("error") or {"code": "job-failed", "detail": "the job failed", "retryable": True})
    newest = error.pop("newest_attempt", None)
    if isinstance(newest, int) and newest > status.attempt:
        # A catalog from a backup: the sink takes no attempt with a number below what it has seen.
        status = replace(status, attempt=newest)
    error = _with_hint(query, in_users_words(query, error))
    if not wanted:
        return ended(status, QueryState.STOPPED, now)
    if _may_be_rotated(env, unit, query, error):
        error["retryable"] = True
    if error.get("retryable"):
        if fills_memory(query, error):
            error["detail"] = f"{error.get('detail')} {sentence(APART)}"
            # This is the cause that is kept and reported, not that of an earlier death.
            status = replace(set_apart(status, status.driver_id), error=None)
        status = after_loss(env.settings, status, now, str(error.get("detail")), error)
        # What was tried in vain may be something else in the end than what it was taken for.
        return replace(status, error=_with_hint(query, status.error or error))
    return replace(ended(status, QueryState.FAILED, now), error=error, message=str(error.get("detail")))


def _may_be_rotated(env: Environment, unit: UnitOfWork, query: Query, error: Mapping[str, Any]) -> bool:
    """Whether a refused login may have used an old value of a secret store: one more attempt reads it again.

    A second refusal in a row is final, as many wrong logins lock accounts.
    """
    if not _REFUSED_LOGIN & {error.get("condition"), error.get("code")} or query.status.restarts:
        return False
    return uses_outside(unit, build_spec(env, unit, query).references())


def _with_hint(query: Query, error: Mapping[str, Any]) -> dict[str, Any]:
    hint = way_out(query, error)
    return {**error, "hint": hint} if hint is not None else dict(error)
