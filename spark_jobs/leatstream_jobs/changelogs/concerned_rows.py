"""Which rows of joined or grouped changelogs a batch concerns: as they were before it, and as they are now.

All other rows give the same before and after, so nothing of them need be computed. The rows are found by
their keys; those of groups by the groups' values, which only the rows themselves tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from leatstream.plan.job_spec import LinkSpec, OperatorSpec
from leatstream_jobs.changelogs.snapshot_rows import HELD, Shape, kept, of_keys, there, union
from leatstream_jobs.changelogs.snapshot_store import Manifest
from leatstream_jobs.changelogs.snapshots import BatchSnapshots

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Views = Mapping[str, "DataFrame | None"]


def register(spark: SparkSession, shapes: Mapping[str, Shape], views: Views) -> None:
    """Make the existing rows of changelogs the views that the compiled SQL reads."""
    for view, rows in views.items():
        shape = shapes[view]
        frame = spark.createDataFrame([], shape.schema) if rows is None else there(rows)
        shape.named(frame).createOrReplaceTempView(view)


def link_values(spark: SparkSession, link: LinkSpec) -> DataFrame:
    """The link's values over the views as they are."""
    return spark.sql(f"SELECT {_written(link)} FROM {link.relation}")  # noqa: S608 - our compiler's


class Concerned:
    """What one batch concerns.

    Args:
        spark: the batch's session.
        operator: a join of changelogs, or an aggregate over one or a join.
        state: of the batch.
        manifest: the batch's own.
    """

    def __init__(
        self, spark: SparkSession, operator: OperatorSpec, state: BatchSnapshots, manifest: Manifest
    ) -> None:
        self._spark = spark
        self._operator = operator
        self._state = state
        self._first = operator.snapshots[0].view
        self._shape = state.shapes[self._first]
        self._changed = {v: rows for v in state.specs if (rows := state.changed(manifest, v)) is not None}
        self._own: DataFrame | None = None

    def views(self) -> tuple[Views, Views]:
        """The rows of each changelog that decide what the batch changes, before and after."""
        link, known = self._operator.groups, self._state.all_before(self._first)
        if link is not None and not self._operator.links and self._state.much(self._first):
            return self._before_after(None, None)
        keys = self._touched(known)
        if keys is None:
            return dict.fromkeys(self._state.specs), dict.fromkeys(self._state.specs)
        around = self._before_after(keys, self._count(self._state.counts.get(self._first, 0)))
        if link is None or known is None:
            return around
        groups = self._groups(link, around)
        found = self._members(link, groups, known)
        if self._operator.links:
            wanted = found.select(*self._shape.keys).unionByName(keys)
            members, count = self._counted(wanted if self._state.few else wanted.distinct())
            return self._of_groups(link, self._before_after(members, count), groups)
        return self._beside(link, around, self._counted(found), groups)

    def _counted(self, frame: DataFrame) -> tuple[DataFrame, int]:
        """The rows, computed, and how many there are at most."""
        rows = self._state.kept(frame)
        return rows, HELD if self._state.few else rows.count()

    def _touched(self, known: DataFrame | None) -> DataFrame | None:
        """Keys of the first changelog's rows that are changed, or joined with a row that is."""
        changed, shape = self._changed, self._shape
        keys = [changed[self._first].select(*shape.keys)] if self._first in changed else []
        for link in self._operator.links:
            if link.view in changed and known is not None:
                other = changed[link.view].select(*self._state.shapes[link.view].keys)
                rows = self._linked(link, {self._first: known})
                touched = of_keys(rows, _last(link), other, self._state.counts[link.view])
                keys.append(touched.select(*shape.keys))
        if set(changed) == {self._first}:
            (self._own,) = keys
            return self._own
        if not keys:
            return None
        if self._state.few:
            return self._state.kept(*keys)
        return union(keys).distinct()

    def _before_after(self, keys: DataFrame | None, few: int | None) -> tuple[Views, Views]:
        """The first changelog's rows of these keys, and what they are joined with."""
        old, new = self._around(self._first, keys, few)
        before: dict[str, DataFrame | None] = {self._first: old}
        after: dict[str, DataFrame | None] = {self._first: new}
        everything = [rows for rows in (old, new) if rows is not None]
        for link in self._operator.links:
            rows = union(everything)
            values = self._linked(link, {self._first: rows}).select(*_last(link)).distinct()
            before[link.view], after[link.view] = self._around(link.view, values, few)
        return before, after

    def _around(
        self, view: str, keys: DataFrame | None, few: int | None
    ) -> tuple[DataFrame | None, DataFrame | None]:
        """The rows of these keys, or all rows, before the batch and after it."""
        state, changed = self._state, self._changed.get(view)
        own = state.was.get(view) if keys is not None and keys is self._own else None
        old = state.known(view, keys, few) if own is None else own
        if old is None:
            return None, changed
        if own is not None and changed is not None:
            return own, changed
        if changed is None and not state.few:
            return old, old
        old, shape = state.kept(old), state.shapes[view]
        if changed is None:
            return old, old
        same = of_keys(old, shape.keys, changed.select(*shape.keys), state.counts[view], "left_anti")
        return old, state.kept(same, changed) if state.few else same.unionByName(changed)

    def _groups(self, link: LinkSpec, around: tuple[Views, ...]) -> DataFrame:
        """The groups that the batch's rows are in or were in."""
        if not self._operator.links:
            rows = [rows for views in around if (rows := views[self._first]) is not None]
            whole = union(rows)
            around = ({self._first: self._state.kept(whole) if self._state.few else whole},)
        found = [self._linked(link, views).select(*_last(link)) for views in around]
        if self._state.few:
            return self._state.kept(*found)
        return kept(union(found).distinct())

    def _members(self, link: LinkSpec, groups: DataFrame, known: DataFrame) -> DataFrame:
        """Rows that are in these groups; outdated ones too."""
        # A row of the files may be outdated, and its key's newest row in another group: one too many does no
        # harm. What it is joined with must be the newest: an old row that LEFT JOIN finds hides that now
        # there is none.
        state = self._state
        views = {view: state.known(view, None, None) for view in state.specs if view != self._first}
        candidates = self._linked(link, {**views, self._first: known})
        count = 2 * max(self._state.counts.get(self._first, 0), 1)
        return of_keys(candidates, _last(link), groups, self._count(count)).select(*self._shape.schema.names)

    def _beside(
        self,
        link: LinkSpec,
        around: tuple[Views, Views],
        members: tuple[DataFrame, int],
        groups: DataFrame,
    ) -> tuple[Views, Views]:
        """The rows that the batch changes, which are in these groups, with the groups' other rows."""
        first, state = self._first, self._state
        known = self._inside(link, {first: state.newest_of(first, *members)}, groups)
        changed = self._changed[first].select(*self._shape.keys)
        others = state.kept(of_keys(known, self._shape.keys, changed, state.counts[first], "left_anti"))
        before, after = (
            {first: others if (rows := views[first]) is None else rows.unionByName(others)}
            for views in around
        )
        return before, after

    def _of_groups(
        self, link: LinkSpec, around: tuple[Views, Views], groups: DataFrame
    ) -> tuple[Views, Views]:
        """These rows without those that are in none of the groups."""
        before, after = ({**views, self._first: self._inside(link, views, groups)} for views in around)
        return before, after

    def _inside(self, link: LinkSpec, views: Views, groups: DataFrame) -> DataFrame:
        count = self._count(2 * self._state.counts.get(self._first, 0))
        rows = of_keys(self._linked(link, views), _last(link), groups, count)
        return rows.select(*self._shape.schema.names)

    def _count(self, count: int) -> int | None:
        # What other changelogs' rows concern may be many groups for one row.
        return count if set(self._changed) <= {self._first} else None

    def _linked(self, link: LinkSpec, views: Views) -> DataFrame:
        """The first changelog's rows, numbered, as the link's FROM gives them, its values behind them."""
        register(self._spark, self._state.shapes, views)
        linked = self._spark.sql(f"SELECT *, {_written(link)} FROM {link.relation}")  # noqa: S608 - our compiler's
        own, values = self._shape.schema.names, _last(link)
        others = [f"__leat_o{i}" for i in range(len(linked.columns) - len(own) - len(values))]
        return linked.toDF(*own, *others, *values).select(*own, *values)


def _last(link: LinkSpec) -> list[str]:
    return [f"__leat_v{i}" for i in range(len(link.values))]


def _written(link: LinkSpec) -> str:
    return ", ".join(f"{value} AS {name}" for value, name in zip(link.values, _last(link), strict=True))
