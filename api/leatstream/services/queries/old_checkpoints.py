"""Checkpoints that queries have left behind: restarts from elsewhere and some changes begin new ones.

Nothing goes back to one of them: a restart and a change only ever count on. What may still read them are
copies that were asked for before, and a driver that does not know yet that it is over; a person may, after a
restart that was a mistake. So they stay for a time, and for good where the present one has nothing to show.
What is to go follows from the catalog and the files alone: whoever is interrupted goes on the next time.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Collection
from pathlib import Path

from leatstream.model.objects import Query
from leatstream.services.environment import Environment
from leatstream.services.queries.catalog import all_queries
from leatstream.services.queries.checkpoint_copies import last_commit
from leatstream.services.queries.origin import awaits_checkpoint, checkpoint_path

_LOG = logging.getLogger(__name__)
_GENERATION = re.compile(r"g(\d+)\Z")


def sweep_checkpoints(env: Environment, mine: Collection[str] | None = None) -> None:
    """Remove what is older than the present checkpoint, once that has been at work for ``keep_checkpoints``.

    Under a URL that is no directory they stay, as they do when the query is deleted.

    Args:
        env: the environment.
        mine: ids of the queries that this server looks after; None = all.
    """
    root = env.settings.checkpoint_root
    if "://" in root:
        return
    queries = list(all_queries(env))
    wanted = _still_to_be_copied(env, queries)
    for query in queries:
        if mine is not None and query.meta.id not in mine:
            continue
        for folder in _left_behind(env, Path(root), query):
            if str(folder.relative_to(root)) not in wanted:
                _remove(folder, query)


def _still_to_be_copied(env: Environment, queries: Collection[Query]) -> set[str]:
    """Paths below the root that savepoints were asked of, or that new queries begin with."""
    with env.open_unit(write=False) as unit:
        found = {f"queries/{s.query_id}/g{s.checkpoint_generation}" for s in unit.waiting_savepoints()}
    return found | {q.origin.path for q in queries if q.origin is not None and awaits_checkpoint(env, q)}


def _left_behind(env: Environment, root: Path, query: Query) -> list[Path]:
    present = root / checkpoint_path(query)
    if query.deleting or not present.parent.is_dir():
        return []
    numbers = {path: _GENERATION.match(path.name) for path in present.parent.iterdir()}
    old = [p for p, found in numbers.items() if found and int(found[1]) < query.checkpoint_generation]
    return sorted(old) if old and _is_established(env, present) else []


def _is_established(env: Environment, present: Path) -> bool:
    """Whether the present checkpoint has been at work for long enough, and to some effect."""
    try:
        # Spark writes it when the first job begins the checkpoint, and never again.
        began = (present / "metadata").stat().st_mtime
    except OSError:
        return False
    kept = env.clock.now().timestamp() - began
    return kept >= env.settings.keep_checkpoints and last_commit(present) is not None


def _remove(folder: Path, query: Query) -> None:
    try:
        shutil.rmtree(folder)
    except OSError as error:  # the next pass finds what is left
        _LOG.warning("old checkpoint %s of query %s could not be removed: %s", folder, query.name, error)
    else:
        _LOG.info("old checkpoint %s of query %s is removed", folder, query.name)
