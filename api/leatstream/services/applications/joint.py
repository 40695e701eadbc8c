"""``'application.job' = 'one'``: queries of an application that read the same are one job (docs/adr/0016).

The first of them leads: the job is its own, with its checkpoint, attempts and driver. The others follow:
their rows are made of the same batches, and their status is that of the one that leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leatstream.connectors.base import Connector
from leatstream.errors import CatalogError, Faults, sentence
from leatstream.model.names import quote
from leatstream.model.objects import Query
from leatstream.plan.change import keeps_state
from leatstream.plan.job_spec import JobSpec, Mode
from leatstream.services.environment import Environment
from leatstream.services.planning.query_properties import (
    MODE,
    batch_interval_ms,
    is_blue_green,
    target_batch_ms,
)
from leatstream.services.planning.specs import fresh_ref
from leatstream.services.queries.checkpoints.origin import FROM_QUERY, FROM_SAVEPOINT
from leatstream.services.queries.save import keep_query
from leatstream.sql.statements import Properties

JOB = "application.job"
_WORDS = ("each", "one")
BATCHWISE = "its application asks for one job, which reads batch by batch for all of its queries"
_REMADE = "Drop the application and make it again, or leave the statement as it is."

Adapt = Callable[[JobSpec], JobSpec]


def wants_one_job(properties: Properties) -> bool:
    """Whether an application's properties ask for one job; RequestError invalid-property."""
    faults = Faults()
    for name, value in properties.items():
        if name != JOB:
            detail = f"An application has no property {name}; known: {JOB}."
            faults.add("invalid-property", detail, position=value.position)
        elif str(value.value).lower() not in _WORDS:
            detail = f"{JOB} must be one of {', '.join(_WORDS)}."
            faults.add("invalid-property", detail, position=value.position)
    faults.raise_if_any()
    return JOB in properties and str(properties[JOB].value).lower() == "one"


def adapted(env: Environment, properties: Properties, old: Query | None) -> Adapt:
    """What makes a planned job one that others can be part of, where it can be.

    Args:
        env: the environment.
        properties: of QUERY WITH.
        old: the query that the statement replaces.

    Returns:
        A function that raises CatalogError ``requires-replacement`` for a job that does not fit any more
        with those that are one with it.
    """

    def adapt(job: JobSpec) -> JobSpec:
        why = _alone(env.connector_classes, job, properties)
        before = JobSpec.model_validate(old.job) if old is not None else None
        joint = before is not None and bool(before.leads or before.led_by)
        if why is not None:
            if joint and old is not None:
                raise CatalogError(
                    "requires-replacement",
                    f"Query {quote(old.name)} is one job with others of its application, and {why} now.",
                    hint=_REMADE,
                )
            return job
        update: dict[str, Any] = {"mode": Mode.MICRO_BATCH, "mode_reason": BATCHWISE}
        update["target_batch_ms"] = target_batch_ms(properties, Mode.MICRO_BATCH)
        interval = batch_interval_ms(properties, Mode.MICRO_BATCH)
        update["trigger_interval_ms"] = max(job.trigger_interval_ms, interval)
        if before is not None:
            update |= {"leads": before.leads, "led_by": before.led_by}
        return job.model_copy(update=update)

    return adapt


def _alone(kinds: Mapping[str, type[Connector]], job: JobSpec, properties: Properties) -> str | None:
    """Why a job cannot be one with others, as the end of a sentence; None if it can."""
    kind = kinds.get(job.sink.store.kind)
    batchwise = kind is not None and not kind.takes_rows and (kind.tables or kind.capabilities.batches)
    reasons = (
        (len(job.sources) != 1, "it reads more than one source"),
        (keeps_state(job), "it keeps state"),
        (bool(job.lookups), "it looks rows up in a table"),
        (any(s.feed is not None for s in job.sources), "it reads the changes of a table"),
        (any(s.log_entity is not None for s in job.sources), "it writes a log of undecodable records"),
        (bool(job.functions), "it calls functions of users"),
        (job.sink.view is None and not batchwise, f"it writes to a store of kind {job.sink.store.kind}"),
        (MODE in properties and job.mode is Mode.REALTIME, "it asks for real-time mode"),
        (FROM_SAVEPOINT in properties or FROM_QUERY in properties, "it begins where another query was"),
        (is_blue_green(properties), "it asks to be replaced by one beside it"),
    )
    return next((reason for holds, reason in reasons if holds), None)


def reads_stale(env: Environment, query: Query) -> bool:
    """Whether what a query of a job reads has other columns or another store than when it was planned.

    All of the job's queries are planned again then: one of them alone would read otherwise than the others.
    """
    job = JobSpec.model_validate(query.job)
    if not (job.leads or job.led_by):
        return False
    source = job.sources[0]
    with env.open_unit(write=False) as unit:
        relation = unit.relations.find(source.relation)
        store = fresh_ref(unit, source.store.name)
    if relation is None or store != source.store:
        return True
    declared = [(c.name, str(c.type), c.not_null) for c in relation.columns]
    return declared != [(c.name, c.type, c.not_null) for c in source.columns]


def _reads(job: JobSpec) -> tuple[object, ...]:
    """What queries of one job have in common."""
    source = job.sources[0].model_dump_json()
    return source, job.driver, job.available_now, job.trigger_interval_ms, job.target_batch_ms


def check_kept(kept: Sequence[Query], leaving: Iterable[Query], before: Iterable[Query] = ()) -> None:
    """See that the queries of each job still fit together after a change.

    Args:
        kept: the queries that the application keeps.
        leaving: those that leave their job.
        before: the queries as they were.

    Raises:
        CatalogError: requires-replacement, with a fault for each that does not.
    """
    jobs = {query.meta.id: JobSpec.model_validate(query.job) for query in kept}
    gone = {query.meta.id: query for query in leaving}
    wrong: dict[str, None] = {}
    old = {query.meta.id: query.checkpoint_generation for query in before}
    begun = {q.meta.id: q.checkpoint_generation - old.get(q.meta.id, q.checkpoint_generation) for q in kept}
    for query in kept:
        leader = jobs[query.meta.id].led_by
        if leader is None:
            continue
        if leader in gone:
            name = quote(gone[leader].name)
            wrong[f"query {name} leads the job that query {quote(query.name)} is part of: it cannot go"] = (
                None
            )
        elif _reads(jobs[query.meta.id]) != _reads(jobs[leader]):
            wrong[f"query {quote(query.name)} is one job with others, which read otherwise now"] = None
        elif begun[query.meta.id] != begun[leader]:
            wrong[
                f"query {quote(query.name)} is one job with others, and only some of them would start over"
            ] = None
    if wrong:
        raise CatalogError("requires-replacement", sentence("; ".join(wrong)), hint=_REMADE)


def join_new(env: Environment, made: Sequence[Query]) -> None:
    """Make new queries that read the same one job, led by the first of them.

    One that is added to an application later has a job of its own: it is to begin where its statement says.
    """
    groups: dict[tuple[object, ...], list[Query]] = {}
    for query in made:
        job = JobSpec.model_validate(query.job)
        if job.mode_reason == BATCHWISE:
            groups.setdefault(_reads(job), []).append(query)
    now = env.clock.now()
    with env.open_unit() as unit:
        for first, *others in groups.values():
            for query in (first, *others) if others else ():
                own = {"leads": [q.meta.id for q in others]} if query is first else {"led_by": first.meta.id}
                current = unit.queries.find_by_id(query.meta.id)
                if current is not None:
                    keep_query(unit, current, replace(current, job={**current.job, **own}), now)
        unit.commit()
