"""A continuous statement that may run, and how plans show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leatstream.model.objects import Effective, QueryKind, Relation, Store
from leatstream.plan.change import Change
from leatstream.plan.job_spec import JobSpec
from leatstream.plan.logical import INTERVAL_JOIN, LogicalPlan


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A continuous statement that may run.

    Attributes:
        sink: the relation to write; for CREATE … AS a new one (meta to be replaced), else that stored.
        entity_action: ``create`` or ``reuse``.
        job: attempt 0, without fencing token, checkpoint and query identity.
        code: source texts of the users' functions, by digest.
        drops: which drops of entities were known before stores were asked (``entity_drops.Seen``).
    """

    kind: QueryKind
    sql: str
    sink: Relation
    sources: tuple[str, ...]
    entity_action: str
    job: JobSpec
    logical: LogicalPlan
    stores: Mapping[str, Store]
    effective: Mapping[str, Effective]
    code: Mapping[str, str] = field(default_factory=dict)
    drops: Mapping[str, int] = field(default_factory=dict)

    def as_json(self, change: Change | None = None) -> dict[str, Any]:
        """The plan as ``statements:validate`` shows it."""
        body: dict[str, Any] = {
            "sources": sources_json(self.logical, self.stores),
            "sink": {
                "fqn": str(self.sink.fqn),
                "kind": self.sink.kind.value,
                "store": self.sink.store,
                "store_kind": self.stores[self.sink.store].kind if self.sink.store else "view",
                "entity": self.sink.entity,
                "entity_action": self.entity_action,
                "columns": [
                    {"name": c.name, "type": str(c.type), "not_null": c.not_null} for c in self.sink.columns
                ],
                "primary_key": list(self.sink.primary_key),
                "properties": {k: v.as_json() for k, v in self.effective.items()},
            },
            "joins": [
                {
                    "kind": j.kind,
                    "type": j.type.value,
                    "within": {"before_ms": j.before_ms, "after_ms": j.after_ms}
                    if j.kind == INTERVAL_JOIN
                    else None,
                    "left": j.left,
                    "right": j.right,
                }
                for j in self.logical.joins
            ],
            "window": self._window_json(),
            "output_mode": self.job.output_mode,
            "mode": self.job.mode.value,
            "mode_reason": self.job.mode_reason,
            "delivery": self.job.delivery.value,
            "driver": self.job.driver.value,
        }
        if change is not None:
            body["change"] = {"class": change.kind, "reason": change.reason}
        return body

    def _window_json(self) -> dict[str, Any] | None:
        aggregation = self.logical.aggregation
        window = aggregation.window if aggregation is not None else None
        if window is None:
            return None
        delay = self.job.sources[0].watermark_delay_ms
        sizes = {"size_ms": window.size_ms, "advance_ms": window.advance_ms}
        return {"kind": window.kind, **sizes, "late_after_ms": delay}


def sources_json(logical: LogicalPlan, stores: Mapping[str, Store]) -> list[dict[str, Any]]:
    """The relations that are read, as plans show them."""
    return [
        {
            "fqn": str(s.relation.fqn),
            "kind": s.relation.kind.value,
            "store": s.relation.store,
            "store_kind": stores[s.relation.store].kind,
            "left_most": index == 0,
        }
        for index, s in enumerate(logical.scans)
    ]
