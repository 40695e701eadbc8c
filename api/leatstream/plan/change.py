"""What a changed query does to the job that is running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from leatstream.plan.job_spec import JobSpec, SourceSpec

ChangeClass = Literal["none", "restart-keep-state", "restart-from-offsets", "new-state"]


@dataclass(frozen=True, slots=True)
class Change:
    """The impact of a change and why, one sentence."""

    kind: ChangeClass
    reason: str


def _place(source: SourceSpec) -> tuple[str, str]:
    return source.store.name, source.entity


def _shape(job: JobSpec) -> tuple[object, ...]:
    retention = job.sink.view.retention_ms if job.sink.view is not None else None
    return job.sink.columns, job.sink.key_columns, retention


def _stateful(job: JobSpec) -> bool:
    # Joins and windows have watermarks; groups without a window are the ones that are updated.
    if job.operator is not None or job.output_mode == "update" or job.distinct:
        return True
    return any(s.watermark_delay_ms is not None for s in job.sources)


def _state(job: JobSpec) -> tuple[object, ...]:
    """All that decides what the checkpoint holds and how it is read."""
    columns = job.sink.columns if job.distinct else None
    functions = [(f.name, f.arguments, f.returns) for f in job.functions]
    return (
        job.sql,
        job.sources,
        job.conf,
        job.output_mode,
        job.operator,
        job.distinct,
        columns,
        functions,
    )


def classify(old: JobSpec, new: JobSpec) -> Change:
    """Compare two versions of a query's job.

    ``restart-from-offsets`` and ``restart-keep-state`` keep the checkpoint; ``new-state`` starts with an
    empty one at the starting positions. State is kept only where nothing differs that Spark freezes in a
    checkpoint.
    """
    frozen = {"attempt": 0, "fencing_token": "", "generation": 0, "checkpoint": "", "mode_reason": ""}
    if old.model_copy(update=frozen) == new.model_copy(update=frozen):
        return Change("none", "the job stays the same")
    if [_place(s) for s in old.sources] != [_place(s) for s in new.sources]:
        return Change("new-state", "the sources differ, so the saved offsets do not fit")
    if old.sink.entity != new.sink.entity or old.sink.store.name != new.sink.store.name:
        return Change("new-state", "the sink is another entity")
    if (old.sink.view or new.sink.view) and _shape(old) != _shape(new):
        return Change("new-state", "the view's columns, key or retention differ, so it is filled anew")
    if old.mode != new.mode:
        return Change("new-state", "real-time and micro-batch jobs do not share a checkpoint")
    if [s.log_entity is None for s in old.sources] != [s.log_entity is None for s in new.sources]:
        return Change("new-state", "a log of undecodable records reads its source a second time")
    if not (_stateful(old) or _stateful(new)):
        return Change("restart-from-offsets", "the query is stateless: it goes on from its saved offsets")
    if _state(old) == _state(new):
        return Change("restart-keep-state", "only settings outside the state differ")
    return Change("new-state", "the query keeps state, which another SQL text cannot read")
