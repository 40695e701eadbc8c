"""Checkpoints that queries have left behind: restarts from elsewhere and some changes begin new ones.

Nothing returns to one of them: a restart and a change only ever count on. What may still read them are
copies that were asked for before, and a driver that does not know yet that it is over; a person may, after a
restart that was a mistake. So they stay for a time, and for good where the present one has nothing to show.
What to delete follows from the catalog and the files alone: an interrupted run continues the next time.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection

from leatstream.errors import CheckpointError
from leatstream.model.objects import Query
from leatstream.model.registered import SavepointState
from leatstream.services.environment import Environment
from leatstream.services.queries.catalog import all_queries
from leatstream.services.queries.checkpoints.files import last_commit
from leatstream.services.queries.checkpoints.origin import awaits_checkpoint, checkpoint_path

_LOG = logging.getLogger(__name__)
_GENERATION = re.compile(r"g(\d+)\Z")


def sweep_checkpoints(env: Environment, mine: Collection[str] | None = None) -> None:
    """Remove what is older than the present checkpoint, once that has been at work for ``keep_checkpoints``.

    Args:
        env: the environment.
        mine: ids of the queries that this server looks after; None = all.
    """
    queries = list(all_queries(env))
    wanted = _still_to_be_copied(env, queries)
    for query in queries:
        # Most have begun one checkpoint only, and no file has to be asked.
        if query.checkpoint_generation == 1 or query.deleting:
            continue
        if mine is not None and query.meta.id not in mine:
            continue
        try:
            _sweep(env, query, wanted)
        except CheckpointError as error:
            _LOG.warning("old checkpoints are looked for again later: %s", error.detail)
            return


def _still_to_be_copied(env: Environment, queries: Collection[Query]) -> set[str]:
    """Paths below the root that savepoints were asked of, or that new queries begin with."""
    with env.open_unit(write=False) as unit:
        asked = [s for s in unit.waiting_savepoints() if s.state is SavepointState.PENDING]
    found = {f"queries/{s.query_id}/g{s.checkpoint_generation}" for s in asked}
    return found | {q.origin.path for q in queries if q.origin is not None and awaits_checkpoint(q)}


def _sweep(env: Environment, query: Query, wanted: Collection[str]) -> None:
    folder = f"queries/{query.meta.id}"
    numbers = {name: _GENERATION.match(name) for name in env.checkpoints.names(folder)}
    old = [n for n, found in numbers.items() if found and int(found[1]) < query.checkpoint_generation]
    if old and _is_established(env, checkpoint_path(query)):
        for name in old:
            if f"{folder}/{name}" not in wanted:
                _remove(env, f"{folder}/{name}", query)


def _is_established(env: Environment, present: str) -> bool:
    """Whether the present checkpoint has been at work for long enough, and to some effect."""
    # Spark writes it when the first job begins the checkpoint, and never again.
    began = env.checkpoints.modified(f"{present}/metadata")
    if began is None or env.clock.now().timestamp() - began < env.settings.keep_checkpoints:
        return False
    return last_commit(env.checkpoints, present) is not None


def _remove(env: Environment, path: str, query: Query) -> None:
    try:
        env.checkpoints.remove(path)
    except OSError as error:  # the next pass finds what is left
        _LOG.warning("old checkpoint %s of query %s could not be removed: %s", path, query.name, error)
    else:
        _LOG.info("old checkpoint %s of query %s is removed", path, query.name)
