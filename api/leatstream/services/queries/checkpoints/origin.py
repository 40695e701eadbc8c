"""What a new query begins with: a savepoint, or how far another query has come."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from leatstream.errors import CatalogError, RequestError, not_found
from leatstream.model.access import Privilege
from leatstream.model.names import quote
from leatstream.model.objects import CheckpointOrigin, Query, QueryKind, QueryState
from leatstream.model.registered import Savepoint, SavepointState
from leatstream.plan.change import classify, keeps_state
from leatstream.plan.job_spec import JobSpec
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment
from leatstream.services.environment.desk import desk_of
from leatstream.services.queries.checkpoints.files import copy_offsets, last_commit
from leatstream.services.queries.update import update_query
from leatstream.sql.statements import Properties, Value

_AT_REST = (QueryState.STOPPED, QueryState.COMPLETED)
FROM_SAVEPOINT, FROM_QUERY = "from.savepoint", "from.query"
_KEPT = ("none", "hot", "restart-keep-state", "restart-from-offsets")


def checkpoint_path(query: Query) -> str:
    """Where a query's present checkpoint lies, below the root."""
    return f"queries/{query.meta.id}/g{query.checkpoint_generation}"


def savepoint_path(savepoint: Savepoint) -> str:
    """Where a savepoint lies, below the root."""
    return f"savepoints/{savepoint.meta.id}"


def refuse_kind(query: Query) -> None:
    """RequestError unsupported for queries of which a copied checkpoint is not the whole."""
    job = JobSpec.model_validate(query.job)
    if job.leads or job.led_by is not None:
        raise RequestError(
            "unsupported",
            f"Query {quote(query.name)} is one job with others of its application, and so is the checkpoint.",
            hint="A new query begins at the starting position that its statement gives.",
        )
    if query.kind is QueryKind.CREATE_MATERIALIZED_VIEW_AS:
        raise RequestError(
            "unsupported",
            f"Query {quote(query.name)} keeps a materialized view, whose rows are no part of its checkpoint.",
            hint="Let it run: a new query fills a view of its own.",
        )
    if any(source.feed is not None for source in job.sources):
        raise RequestError(
            "unsupported",
            f"Query {quote(query.name)} reads a table's changes by a slot of its own, which has no copy.",
            hint="A new query begins with the existing rows.",
        )


def require_savepoint(unit: UnitOfWork, name: str) -> Savepoint:
    """The savepoint inside a unit; CatalogError not-found."""
    found = unit.savepoints.find(name)
    if found is None:
        raise not_found("savepoint", quote(name))
    return found


def refuse_unbegun(env: Environment, properties: Properties, job: JobSpec) -> None:
    """See that another query, where one is named to begin with, has a batch to begin behind.

    It reads files, perhaps of a remote system: no caller may be writing to the catalog meanwhile.

    Args:
        env: the environment.
        properties: of the query.
        job: of the query.

    Raises:
        RequestError, CatalogError: as ``origin_of``.
        CheckpointError: they do not answer.
    """
    given = properties.get(FROM_QUERY)
    if given is None:
        return
    with env.open_unit(write=False) as unit:
        origin = origin_of(unit, properties, job)
    if origin is not None and last_commit(env.checkpoints, origin.path) is None:
        raise _misfit(given, f"Query {quote(origin.name)} has not finished a batch yet.")


def check_origin(
    env: Environment, unit: UnitOfWork, properties: Properties, job: JobSpec, to_come: Collection[str]
) -> None:
    """Check while planning what a new query would begin with.

    Args:
        env: the environment.
        unit: of the planning.
        properties: of the query.
        job: its planned job.
        to_come: savepoints and queries that will be there, or at rest, by then: they are not checked.

    Raises:
        RequestError, CatalogError: as ``origin_of``.
        CheckpointError: the checkpoints do not answer.
    """
    given = properties.get(FROM_SAVEPOINT) or properties.get(FROM_QUERY)
    if given is not None and str(given.value) not in to_come:
        origin_of(unit, properties, job)
        refuse_unbegun(env, properties, job)


def origin_of(unit: UnitOfWork, properties: Properties, job: JobSpec) -> CheckpointOrigin | None:
    """What a new query begins with, by its properties ``from.savepoint`` and ``from.query``.

    Args:
        unit: an open unit of work.
        properties: of the query.
        job: of the query.

    Raises:
        RequestError: invalid-property or unsupported, when it does not fit.
        CatalogError: not-found.
    """
    by_savepoint, by_query = properties.get(FROM_SAVEPOINT), properties.get(FROM_QUERY)
    given = by_savepoint or by_query
    if given is None:
        return None
    if by_savepoint is not None and by_query is not None:
        raise _misfit(by_query, f"Either {FROM_SAVEPOINT!r} or {FROM_QUERY!r} is given.")
    name = str(given.value)
    if by_savepoint is not None:
        try:
            savepoint = require_savepoint(unit, name)
        except CatalogError as error:
            raise error.at(given.position) from None
        if savepoint.state is not SavepointState.READY:
            why = savepoint.message or "its query has not stopped yet"
            raise _misfit(given, f"Savepoint {quote(name)} is {savepoint.state.value}: {why}.")
        _check_fit(given, f"savepoint {quote(name)}", JobSpec.model_validate(savepoint.job), job)
        return CheckpointOrigin(name=name, path=savepoint_path(savepoint), whole=True)
    query = unit.queries.find(name)
    if query is None:
        detail = f"Query {quote(name)} does not exist."
        raise CatalogError("not-found", detail, noun="query", **given.place)
    # A checkpoint holds rows: to see the query's state is not enough.
    desk = desk_of(unit)
    if desk is not None:
        desk.require((Privilege.OPERATE, "query", quote(query.name), query.meta.owner))
    refuse_kind(query)
    old = JobSpec.model_validate(query.job)
    _check_fit(given, f"query {quote(name)}", old, job)
    whole = keeps_state(old)
    if whole and query.status.state not in _AT_REST:
        raise RequestError(
            "unsupported",
            f"Query {quote(name)} keeps state and is {query.status.state.value}; state is copied only "
            "while it is stopped.",
            **given.place,
            hint=f"TERMINATE QUERY {quote(name)} WITH SAVEPOINT name, then begin with the savepoint",
        )
    return CheckpointOrigin(name=name, path=checkpoint_path(query), whole=whole)


def _check_fit(given: Value, what: str, old: JobSpec, new: JobSpec) -> None:
    if old.sink.view is not None or new.sink.view is not None or any(s.feed for s in new.sources):
        raise RequestError(
            "unsupported",
            "Materialized views and queries over a table's changes begin with nothing but their sources.",
            **given.place,
        )
    placed = {"relation": old.sink.relation, "store": old.sink.store, "entity": old.sink.entity}
    change = classify(old, new.model_copy(update={"sink": new.sink.model_copy(update=placed)}))
    if change.kind not in _KEPT:
        raise _misfit(given, f"The query cannot begin with {what}: {change.reason}.")


def _misfit(given: Value, detail: str) -> RequestError:
    return RequestError("invalid-property", detail, **given.place)


def awaits_checkpoint(query: Query) -> bool:
    """Whether what the query begins with has still to be copied for it."""
    if query.origin is None or query.checkpoint_generation != 1:
        return False
    # What has run has had its copy, also before that was noted.
    return not query.origin.laid and query.status.attempt == 0


def lay_checkpoint(env: Environment, query: Query) -> None:
    """Give a new query the checkpoint that it begins with; may be repeated, and may take long.

    Raises:
        CatalogError: not-found or invalid-transition, if that was deleted or is in use.
        CheckpointError: the file system is full, does not answer, or refuses.
    """
    origin = query.origin
    if origin is None or not awaits_checkpoint(query):
        return
    if not env.checkpoints.holds(checkpoint_path(query)):
        _copy(env, origin, checkpoint_path(query))
    update_query(env, query, lambda current: replace(current, origin=replace(origin, laid=True)))


def _copy(env: Environment, origin: CheckpointOrigin, target: str) -> None:
    attempt = _standing(env, origin)
    try:
        if origin.whole:
            env.checkpoints.copy(origin.path, target)
        else:
            copy_offsets(env.checkpoints, origin.path, target)
    except OSError as error:
        why = error.strerror or str(error)
        raise CatalogError(
            "not-found", f"The checkpoint of {quote(origin.name)} cannot be copied any more: {why}."
        ) from None
    try:
        if _standing(env, origin) != attempt:
            raise _runs(origin)
    except CatalogError:
        env.checkpoints.remove(target)
        raise


def _standing(env: Environment, origin: CheckpointOrigin) -> int | None:
    """The last attempt of a query that is copied with its state; CatalogError unless it is at rest."""
    folder, found_id = origin.path.split("/")[:2]
    if folder != "queries" or not origin.whole:
        return None
    with env.open_unit(write=False) as unit:
        found = unit.queries.find_by_id(found_id)
    if found is None or found.deleting:
        raise CatalogError("not-found", f"Query {quote(origin.name)} is gone, and its checkpoint with it.")
    if found.status.state not in _AT_REST:
        raise _runs(origin)
    return found.status.attempt


def _runs(origin: CheckpointOrigin) -> CatalogError:
    return CatalogError(
        "invalid-transition",
        f"Query {quote(origin.name)} keeps state and has been started again before that could be copied.",
        hint=f"Stop {quote(origin.name)}, then start this query again.",
    )
