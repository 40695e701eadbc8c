"""Copies checkpoints and removes savepoints, on a thread of its own: others shall not wait for that."""

from __future__ import annotations

import logging
from collections.abc import Collection

from leatstream.errors import LeatstreamError
from leatstream.services.environment import Environment
from leatstream.services.queries.checkpoints.origin import lay_checkpoint
from leatstream.services.queries.checkpoints.savepoints import attend_savepoints
from leatstream.services.queries.update import not_started

_LOG = logging.getLogger(__name__)


def copy_what_waits(env: Environment, mine: Collection[str] | None = None) -> None:
    """Copy for the savepoints that were asked for, and for new queries that begin with another's checkpoint.

    What is left of savepoints that are being deleted is removed.

    Args:
        env: the environment.
        mine: ids of the queries that this server looks after, as one server alone may copy; None = all.
    """
    attend_savepoints(env, mine)
    for query_id in sorted(env.awaited_copies):
        try:
            _lay(env, query_id)
        except Exception:  # the reconciler asks again for what is still awaited
            _LOG.exception("the checkpoint of query %s could not be laid", query_id)
        finally:
            env.awaited_copies.discard(query_id)
        env.changed.notify()


def _lay(env: Environment, query_id: str) -> None:
    with env.open_unit(write=False) as unit:
        query = unit.queries.find_by_id(query_id)
    if query is None or query.deleting:
        return
    try:
        lay_checkpoint(env, query)
    except LeatstreamError as error:
        not_started(env, query, error)
    with env.open_unit(write=False) as unit:
        gone = unit.queries.find_by_id(query_id) is None
    if gone:
        # It was deleted meanwhile, and the copy has outlived what removed its files.
        env.checkpoints.remove(f"queries/{query_id}")
