"""The snapshots of one query: what a batch changes, the state before and after it, when files are merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from leatstream.model.objects import DELETED, ROWTIME, UNTIL
from leatstream.plan.job_spec import SnapshotSpec
from leatstream_jobs.changelogs.snapshot_rows import (
    IS,
    WAS,
    Shape,
    held,
    kept,
    newest,
    of_keys,
    replaced,
    versions,
)
from leatstream_jobs.changelogs.snapshot_store import File, Manifest, SnapshotStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_FILES = 8
_PART = 8  # a batch that changes an eighth of the rows concerns most groups of a few rows
# How long a deleted row is remembered, so that an older update that comes late does not bring it back.
TOMBSTONES_MS = 86_400_000


class BatchSnapshots:
    """The snapshots as one batch sees them.

    Args:
        store: where they are.
        specs: of the job.
        shapes: by view.
        number: of the batch.
        fresh: view to the batch's rows, numbered columns, only where there are any.
        counts: view to the number of these rows.
        newest_times: view to the newest event time in the batch, of all sources; microseconds. None of a view
            whose rows tell none.

    Attributes:
        few: whether the batch's rows, and those that they concern so far, are held by the driver.
        was: view to the rows that the batch replaces, once ``save`` has looked them up.
    """

    def __init__(
        self,
        store: SnapshotStore,
        specs: Sequence[SnapshotSpec],
        shapes: Mapping[str, Shape],
        number: int,
        fresh: Mapping[str, DataFrame],
        counts: Mapping[str, int],
        newest_times: Mapping[str, int],
        *,
        few: bool,
    ) -> None:
        self.store = store
        self.specs = {spec.view: spec for spec in specs}
        self.shapes = shapes
        self.number = number
        self.fresh = fresh
        self.counts = counts
        self.few = few
        self.was: dict[str, DataFrame] = {}
        self._now: dict[str, DataFrame] = {}
        self._sizes: dict[str, int] = {}
        self.before = store.before(number)
        times = dict(self.before.newest)
        for view, at in newest_times.items():
            times[view] = max(at, times.get(view, at))
        self.newest = times

    def save(self) -> Manifest:
        """Write what the batch changes, and make it count; a repeated batch finds it written."""
        found = self.store.find(self.number)
        if found is not None:
            return found
        files, changes = dict(self.before.files), dict[str, str]()
        for view, rows in self.fresh.items():
            if not self.specs[view].versions:
                rows = self._replacing(view, rows)
            name = f"{view}-{self.number:012d}"
            written = self.store.write(name, rows.coalesce(1))
            changes[view], self._sizes[view] = name, written.size
            files[view] = self._merged(view, (*files.get(view, ()), written))
        manifest = Manifest(self.number, files, changes, self.newest)
        self.store.commit(manifest)
        self.store.clean(manifest)
        return manifest

    def _replacing(self, view: str, rows: DataFrame) -> DataFrame:
        """The rows that become the newest of their keys; what they replace is kept beside them."""
        shape, known = self.shapes[view], self.all_before(view)
        keys = shape.keys
        if known is not None:
            known = of_keys(known, keys, rows.select(*keys), self.counts[view])
        pairs = self.kept(replaced(rows, known, keys, undated=shape.undated))
        if known is not None:
            self.was[view] = pairs.where(f"{WAS} IS NOT NULL").select(f"{WAS}.*")
        self._now[view] = pairs.select(f"{IS}.*")
        return self._now[view]

    def kept(self, *frames: DataFrame) -> DataFrame:
        """The rows of all the frames, of the same columns, computed now and once; held while few."""
        rows = held(*frames) if self.few else None
        if rows is None:
            # One row may concern a million: the batch is processed as those of many rows from here on.
            self.few = False
            return kept(*frames)
        return rows

    def changed(self, manifest: Manifest, view: str) -> DataFrame | None:
        """The rows of a view that the batch brought; None if there are none."""
        if view in self._now:
            return self._now[view]
        name = manifest.changes.get(view)
        return None if name is None else self.store.rows([File(name, 0)], self.shapes[view].schema)

    def all_before(self, view: str) -> DataFrame | None:
        """Every row in the files before the batch, outdated ones too."""
        return self.store.rows(self.before.files.get(view, ()), self.shapes[view].schema)

    def known(self, view: str, keys: DataFrame | None, count: int | None) -> DataFrame | None:
        """The newest row before the batch of each of these keys, or of all; None if nothing is known."""
        shape = self.shapes[view]
        rows = self.all_before(view)
        if rows is None:
            return None
        return newest(rows if keys is None else of_keys(rows, shape.keys, keys, count), shape.keys)

    def newest_of(self, view: str, rows: DataFrame, count: int) -> DataFrame:
        """The newest row before the batch of each key in ``rows``, which are ``count`` of the files' rows."""
        keys = self.shapes[view].keys
        # The first file has one row of a key, and what replaced it is in the later ones.
        later = self.store.rows(self.before.files[view][1:], self.shapes[view].schema)
        if later is not None:
            rows = rows.unionByName(of_keys(later, keys, rows.select(*keys), count))
        return newest(rows, keys)

    def much(self, view: str) -> bool:
        """Whether the batch changes a good part of a changelog's rows."""
        known = sum(file.size for file in self.before.files.get(view, ()))
        return _PART * self._sizes.get(view, 0) >= known

    def _merged(self, view: str, files: tuple[File, ...]) -> tuple[File, ...]:
        """The files, with many small ones made one: all of them, or the later ones beside a large first."""
        if len(files) <= _MOST_FILES:
            return files
        base, *later = files
        whole = 4 * sum(file.size for file in later) >= base.size
        rows = self.store.rows(files if whole else later, self.shapes[view].schema)
        if rows is None:
            return files
        rows = self._kept(view, rows, whole=whole)
        one = self.store.write(f"{view}-{self.number:012d}-merged", rows)
        return (one,) if whole else (base, one)

    def _kept(self, view: str, rows: DataFrame, *, whole: bool) -> DataFrame:
        from pyspark.sql import functions as F

        spec, shape = self.specs[view], self.shapes[view]
        if not spec.versions:
            rows = newest(rows, shape.keys)
            if not whole or view not in self.newest:
                return rows
            limit = F.timestamp_micros(F.lit(self.newest[view] - 1000 * TOMBSTONES_MS))
            return rows.where(~F.col(DELETED) | (F.col(ROWTIME) >= limit))
        if not whole or spec.history_ms is None or not self.newest:
            return rows
        # What was true at any time since the limit: of older versions the last one still was.
        slowest = reduce(min, self.newest.values())
        limit = F.timestamp_micros(F.lit(slowest - 1000 * spec.history_ms))
        ended = F.coalesce(F.col(UNTIL) <= limit, F.col(DELETED) & (F.col(ROWTIME) < limit))
        return versions(rows, shape.keys, undated=shape.undated).where(~ended).drop(UNTIL)
