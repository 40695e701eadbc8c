"""Savepoints: copies of a stopped query's checkpoint, under a name, that new queries can begin with."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from leatstream.errors import CatalogError, CheckpointError, LeatstreamError, RequestError, already_exists
from leatstream.model.names import quote
from leatstream.model.objects import DesiredState, Query, QueryState
from leatstream.model.registered import Savepoint, SavepointState
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Page, Precondition, Principal, new_meta
from leatstream.services.environment.authorization import OPERATE, READ, WRITE, authorize
from leatstream.services.environment.pages import ANY, Only, repository_page
from leatstream.services.queries.catalog import refuse_deleting, require_query
from leatstream.services.queries.checkpoints.files import last_commit, offsets_of
from leatstream.services.queries.checkpoints.origin import (
    awaits_checkpoint,
    checkpoint_path,
    refuse_kind,
    require_savepoint,
    savepoint_path,
)
from leatstream.services.queries.definition import definition_of
from leatstream.services.queries.replace.in_place import replace_query

_LOG = logging.getLogger(__name__)
_DELETED = "the query was deleted before it was copied"
_REMOVING = "its files are being removed"
_COPYING = "the checkpoint is being copied"
_STARTED = "the query was started again before it was copied"


def take_savepoint(env: Environment, principal: Principal, query_name: str, name: str) -> Savepoint:
    """Stop a query in order and, once its job has ended, copy its checkpoint; that is done by the reconciler.

    Args:
        env: the environment.
        principal: who asks.
        query_name: of the query.
        name: of the savepoint.

    Raises:
        CatalogError: not-found, already-exists, invalid-transition.
        RequestError: unsupported, where a copy would be no use.
    """
    authorize(principal, OPERATE, "query", query_name)
    with env.open_unit() as unit:
        query = require_query(unit, query_name)
        refuse_deleting(query)
        refuse_kind(query)
        if unit.savepoints.find(name) is not None:
            raise already_exists("savepoint", quote(name))
        if query.status.attempt == 0 and (query.origin is None or not query.origin.laid):
            raise CatalogError("invalid-transition", f"Query {quote(query_name)} has not run yet.")
        made = new_meta("svp", principal, env.clock.now())
        savepoint = Savepoint(
            # It holds records of the query, so the query's owner owns it, not the user who took it.
            meta=replace(made, owner=query.meta.owner),
            name=name,
            query=query.name,
            query_id=query.meta.id,
            query_generation=query.meta.generation,
            sql=query.sql,
            job=query.job,
            checkpoint_generation=query.checkpoint_generation,
        )
        unit.savepoints.add(savepoint)
        body = replace(definition_of(query), desired_state=DesiredState.STOPPED)
        replace_query(env, principal, unit, query, body, None, None)
        unit.commit()
    env.changed.notify()
    return savepoint


def attend_savepoints(env: Environment, mine: Collection[str] | None = None) -> None:
    """Copy what is to be copied as soon as its query has come to rest; remove what is being deleted.

    Args:
        env: the environment.
        mine: ids of the queries that this server looks after, as one server alone may copy; None = all.
    """
    with env.open_unit(write=False) as unit:
        waiting = unit.waiting_savepoints()
    for savepoint in waiting:
        if savepoint.state is SavepointState.DELETING:
            _remove_if_possible(env, savepoint)
        else:
            _attend(env, savepoint, mine)


def _attend(env: Environment, savepoint: Savepoint, mine: Collection[str] | None) -> None:
    with env.open_unit(write=False) as unit:
        query = unit.queries.find_by_id(savepoint.query_id)
    if query is not None and mine is not None and query.meta.id not in mine:
        return
    done = _copied(env, savepoint, query)
    if done != savepoint:
        _keep(env, done, query)


def _remove_if_possible(env: Environment, savepoint: Savepoint) -> None:
    try:
        _remove(env, savepoint)
    except CheckpointError as error:
        _LOG.debug("files of savepoint %s are removed later: %s", savepoint.name, error.detail)


def _keep(env: Environment, done: Savepoint, query: Query | None) -> None:
    """Record the result; a copy whose query or savepoint has changed meanwhile is deleted."""
    with env.open_unit() as unit:
        now = unit.queries.find_by_id(done.query_id)
        why = _hindrance(now)
        if (
            why is None
            and now is not None
            and query is not None
            and now.status.attempt != query.status.attempt
        ):
            why = _STARTED
        if done.state is SavepointState.READY and why is not None:
            done = _failed(done, why)
        wanted = _is_pending(unit, done)
        if wanted:
            unit.savepoints.update(done)
            unit.commit()
    if not wanted or done.state is SavepointState.FAILED:
        _discard(env, done)
    env.changed.notify()


def _discard(env: Environment, savepoint: Savepoint) -> None:
    try:
        env.checkpoints.remove(savepoint_path(savepoint))
    except (OSError, LeatstreamError) as error:
        _LOG.warning("files of savepoint %s stay: %s", savepoint.name, error)


def _hindrance(query: Query | None) -> str | None:
    """Why there is nothing to copy any more."""
    if query is None or query.deleting:
        return _DELETED
    return _STARTED if query.desired_state is DesiredState.RUNNING else None


def _copied(env: Environment, savepoint: Savepoint, query: Query | None) -> Savepoint:
    why = _hindrance(query)
    if query is None or why is not None:
        return _failed(savepoint, why or _DELETED)
    if query.status.state is not QueryState.STOPPED:
        return savepoint
    try:
        return _copy(env, savepoint, query)
    except CheckpointError as error:
        if error.retryable:
            return replace(savepoint, message=f"it waits: {error.detail}")
        return _failed(savepoint, f"the checkpoint could not be copied: {error.detail}")
    except OSError as error:
        _LOG.warning("savepoint %s could not be copied: %s", savepoint.name, error)
        return _failed(savepoint, f"the checkpoint could not be copied: {error.strerror or error}")


def _copy(env: Environment, savepoint: Savepoint, query: Query) -> Savepoint:
    files = env.checkpoints
    # A statement that was changed since may have begun another checkpoint: that is not what was asked for.
    asked = replace(query, checkpoint_generation=savepoint.checkpoint_generation)
    last = last_commit(files, checkpoint_path(asked))
    if last is None:
        return _failed(savepoint, "the query has not finished a batch yet")
    _tell_copying(env, savepoint)
    target = savepoint_path(savepoint)
    files.copy(checkpoint_path(asked), target)
    relations = [source["relation"] for source in savepoint.job["sources"]]
    offsets = offsets_of(files, target, relations)
    return replace(savepoint, state=SavepointState.READY, batch=last, offsets=offsets, message=None)


def _tell_copying(env: Environment, savepoint: Savepoint) -> None:
    """It may take long, so the status says so to those who wait."""
    with env.open_unit() as unit:
        if savepoint.message != _COPYING and _is_pending(unit, savepoint):
            unit.savepoints.update(replace(savepoint, message=_COPYING))
            unit.commit()
    env.changed.notify()


def _is_pending(unit: UnitOfWork, savepoint: Savepoint) -> bool:
    """Whether nobody has deleted it meanwhile."""
    found = unit.savepoints.find_by_id(savepoint.meta.id)
    return found is not None and found.state is SavepointState.PENDING


def _failed(savepoint: Savepoint, why: str) -> Savepoint:
    return replace(savepoint, state=SavepointState.FAILED, message=why, batch=None, offsets={})


def get_savepoint(env: Environment, principal: Principal, name: str) -> Savepoint:
    """The savepoint; CatalogError not-found.

    Args:
        env: the environment.
        principal: who asks.
        name: of the savepoint.
    """
    authorize(principal, READ, "savepoint", name)
    with env.open_unit(write=False) as unit:
        return require_savepoint(unit, name)


def list_savepoints(
    env: Environment,
    principal: Principal,
    page_size: int = 100,
    page_token: str | None = None,
    only: Only = ANY,
) -> Page[Savepoint]:
    """One page of savepoints by name.

    Args:
        env: the environment.
        principal: who asks.
        page_size: the most items of a page.
        page_token: of the page wanted; None = the first.
        only: what the list is narrowed to.
    """
    authorize(principal, READ, "savepoints")
    with env.open_unit(write=False) as unit:
        return repository_page(
            unit.savepoints,
            lambda s: s.name,
            "savepoints",
            page_size,
            page_token,
            only=only,
            has=lambda s: {"state": s.state, "query": s.query},
        )


def delete_savepoint(
    env: Environment,
    principal: Principal,
    name: str,
    pre: Precondition = Precondition(),  # noqa: B008
) -> None:
    """Delete it with its files.

    Args:
        env: the environment.
        principal: who asks.
        name: of the savepoint.
        pre: precondition.

    Raises:
        CatalogError: has-dependents, while a query is still to begin with it.
        CheckpointError: the files cannot be removed now; they are as soon as their file system answers.
    """
    authorize(principal, WRITE, "savepoint", name)
    if env.staged:
        raise RequestError(
            "unsupported", "DROP SAVEPOINT deletes files, which cannot be undone.", hint="Run it on its own."
        )
    with env.open_unit() as unit:
        found = require_savepoint(unit, name)
        pre.check(found.meta.generation, "savepoint", name)
        for query in unit.unfiltered.queries.page(limit=100_000):
            if query.origin is not None and query.origin.path == savepoint_path(found):
                if not awaits_checkpoint(query):
                    continue
                raise CatalogError(
                    "has-dependents", f"Query {quote(query.name)} is to begin with savepoint {quote(name)}."
                )
        going = replace(found, state=SavepointState.DELETING, message=_REMOVING)
        unit.savepoints.update(going)
        unit.commit()
    _remove(env, going)


def _remove(env: Environment, savepoint: Savepoint) -> None:
    """Remove the files of one that is being deleted, then itself."""
    try:
        env.checkpoints.remove(savepoint_path(savepoint))
    except OSError as error:  # of a disk, which another try would not mend
        _LOG.warning("files of savepoint %s stay: %s", savepoint.name, error)
    with env.open_unit() as unit:
        if unit.savepoints.find_by_id(savepoint.meta.id) is not None:
            unit.savepoints.delete(savepoint.meta.id)
            unit.commit()
    env.changed.notify()
