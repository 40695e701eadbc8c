"""Starting a query again: from its checkpoint, or from another place in its sources."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from leatstream.connectors.registry import kinds_that, kinds_without
from leatstream.errors import RequestError
from leatstream.model.instants import iso, read_milliseconds
from leatstream.model.names import quote
from leatstream.model.objects import DesiredState, Query, QueryKind, QueryState, StartFrom
from leatstream.plan.change import keeps_state
from leatstream.plan.job_spec import JobSpec
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.authorization import OPERATE, READ, authorize
from leatstream.services.functions.jobs import with_present_sources
from leatstream.services.queries.catalog import get_query, refuse_deleting, require_query
from leatstream.services.queries.joint_jobs import leader_of, refuse_alone
from leatstream.services.queries.save import RESTART_ASKED, keep_query
from leatstream.services.queries.skipping import skipping

POSITIONS = ("earliest", "latest", "timestamp", "offsets")


@dataclass(frozen=True, slots=True)
class StartWish:
    """Where somebody wants a query to start, as they wrote it.

    Attributes:
        position: one of ``POSITIONS``.
        timestamp: epoch milliseconds, or a time in ISO 8601; without a zone it is UTC.
        offsets: source to partition to the first offset to be read.
    """

    position: str
    timestamp: str | int | None = None
    offsets: Mapping[str, Mapping[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """What a restart from another place does, in sentences."""

    start: str
    lost: str
    repeated: str
    state: str

    def summary(self) -> str:
        """All of it in one line."""
        return f"{self.start}: {self.lost}; {self.repeated}; {self.state}"


def restart_query(
    env: Environment,
    principal: Principal,
    name: str,
    wish: StartWish | None = None,
    within: Collection[str] = (),
    skip: str | None = None,
) -> Query:
    """Start again, whatever the state; also brings a stopped query back.

    Args:
        env: the environment.
        principal: who asks.
        name: exact name.
        wish: where; None = from the last checkpoint. With it a new checkpoint is begun, and the old one is
            removed some time after the new one is at work (``checkpoints.sweep``).
        within: names of queries that are restarted together with this one.
        skip: the record that the query has failed at, which its job leaves out from now on; None = none.
            Of a query that is part of another's job, the whole job is started again.

    Raises:
        CatalogError: not-found, invalid-transition.
        RequestError: validation or unsupported, when it cannot start there, or cannot skip that.
    """
    authorize(principal, OPERATE, "query", name)
    with env.open_unit() as unit:
        before = require_query(unit, name)
        refuse_deleting(before)
        if skip is not None:
            before = unit.queries.find_by_id(leader_of(before) or "") or before
        elif name not in within:
            refuse_alone(unit, before)
        query, message = before, RESTART_ASKED
        if skip is not None:
            query = skipping(query, skip, principal.name, env.clock.now())
            message = f"{RESTART_ASKED}, without the record {skip}"
        if wish is not None:
            start = replace(start_of(query, wish), checkpoint_generation=query.checkpoint_generation + 1)
            message = f"{RESTART_ASKED}, {plan_of_start(query, start).summary()}"
            query = replace(query, checkpoint_generation=start.checkpoint_generation, start=start)
            if (query.status.error or {}).get("code") == "source-gone":
                query = replace(query, skipped=())  # in a topic that was made again these are other records
        status = replace(
            query.status, error=None, message=message, restarts=0, outages=0, next_attempt_at=None
        )
        # What it writes to may have been deleted since: it is looked for again, and made where it is not.
        status = replace(status, crashes=0, apart_from=None, entity_ready=False)
        if status.driver_id is None:
            status = replace(status, state=QueryState.PENDING, since=env.clock.now())
        else:
            # The reconciler takes a job that runs an older generation down and starts the present one.
            status = replace(status, observed_generation=0)
        query = replace(query, desired_state=DesiredState.RUNNING, status=status)
        query = with_present_sources(unit, query)
        keep_query(unit, before, query, env.clock.now())
        unit.commit()
    env.changed.notify()
    return query


def restart_plan(env: Environment, principal: Principal, name: str, wish: StartWish) -> RestartPlan:
    """What a restart from there would lose and repeat; it changes nothing. Errors of ``restart_query``.

    Args:
        env: the environment.
        principal: who asks.
        name: of the query.
        wish: where it shall start.
    """
    authorize(principal, READ, "query", name)
    query = get_query(env, principal, name)
    refuse_deleting(query)
    return plan_of_start(query, start_of(query, wish))


def start_of(query: Query, wish: StartWish) -> StartFrom:
    """Check a wish against the query's sources.

    Raises:
        RequestError: validation or unsupported.
    """
    job = JobSpec.model_validate(query.job)
    if wish.position not in POSITIONS:
        raise _wrong(f"A query starts from {', '.join(POSITIONS)}, not from {wish.position!r}.", "#/from")
    if any(source.feed is not None for source in job.sources):
        raise RequestError(
            "unsupported",
            f"Query {quote(query.name)} reads the changes of a table, which have no other place to begin.",
            pointer="#/from",
            hint="Delete it and create it again: it begins with the existing rows.",
        )
    if (wish.timestamp is not None) != (wish.position == "timestamp"):
        raise _wrong("A timestamp is given exactly if the query starts from TIMESTAMP.", "#/timestamp")
    if (wish.offsets is not None) != (wish.position == "offsets"):
        raise _wrong("Offsets are given exactly if the query starts from OFFSETS.", "#/offsets")
    return StartFrom(
        position=wish.position,
        timestamp_ms=_milliseconds(wish.timestamp) if wish.timestamp is not None else None,
        offsets=_offsets(job, wish.offsets) if wish.offsets is not None else {},
    )


def read_offsets(text: str) -> dict[str, dict[str, int]]:
    """Offsets of a statement: JSON, source to partition to offset; RequestError validation."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    pairs = found.items() if isinstance(found, dict) else ()
    shaped = [isinstance(one, dict) and all(type(n) is int for n in one.values()) for _, one in pairs]
    if not isinstance(found, dict) or not all(shaped):
        raise _wrong(
            'OFFSETS are JSON: each source, its partitions, and the first offset: \'{"s": {"0": 12}}\'.',
            "#/offsets",
        )
    return found


def plan_of_start(query: Query, start: StartFrom) -> RestartPlan:
    """What is lost and what is repeated."""
    job = JobSpec.model_validate(query.job)
    where = start.position
    if start.timestamp_ms is not None:
        where = f"timestamp {iso(start.timestamp_ms)}"
    before = {
        "earliest": "no record that the sources still have is lost",
        "latest": "records that were not read until now are lost",
        "timestamp": "records from before it that were not read yet are lost",
        "offsets": "records before them that were not read yet are lost",
    }[start.position]
    if query.kind is QueryKind.CREATE_MATERIALIZED_VIEW_AS:
        again = f"{query.sink} is emptied and filled again"
    elif start.position == "latest":
        again = "no record is read twice"
    elif job.sink.deletes or job.sink.key_columns:
        again = f"what was read since is read again, and rows of {query.sink} are written once more, by key"
    else:
        again = f"what was read since is read again and written to {query.sink} once more"
    state = "the state of joins, windows and groups starts empty" if keeps_state(job) else "it keeps no state"
    return RestartPlan(f"from {where}", before, again, state)


def _wrong(detail: str, pointer: str) -> RequestError:
    return RequestError("validation", detail, pointer=pointer)


def _milliseconds(text: str | int) -> int:
    try:
        return read_milliseconds(text)
    except ValueError as error:
        raise _wrong(f"The timestamp {error}.", "#/timestamp") from None


def _offsets(job: JobSpec, given: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """By full relation name, for every source."""
    other = kinds_without("positions", (s.store.kind for s in job.sources))
    if other:
        raise RequestError(
            "unsupported",
            f"Offsets are for stores of kind {kinds_that('positions')}; this query reads stores of kind "
            f"{', '.join(other)}.",
            pointer="#/offsets",
            hint="Use EARLIEST, LATEST or TIMESTAMP.",
        )
    relations = list(dict.fromkeys(s.relation for s in job.sources))
    found: dict[str, dict[str, int]] = {}
    for name, partitions in given.items():
        meant = [r for r in relations if name == r or r.endswith(f".{name}")]
        if len(meant) != 1:
            raise _wrong(f"Offsets are for the query's sources {', '.join(relations)}.", "#/offsets")
        if not partitions or any(not p.isdecimal() or n < 0 for p, n in partitions.items()):
            raise _wrong(
                f"Offsets of {meant[0]}: each is a partition's number with an offset from 0.", "#/offsets"
            )
        found[meant[0]] = dict(partitions)
    missing = [r for r in relations if r not in found]
    if missing:
        raise _wrong(f"Offsets are missing for {', '.join(missing)}.", "#/offsets")
    return found
