"""What a changed query does to the job that is running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from leatstream.model.objects import QueryKind
from leatstream.model.view_values import INTEGERS
from leatstream.plan.job_spec import JobSpec, OperatorSpec, SourceSpec

ChangeClass = Literal[
    "none", "hot", "restart-keep-state", "restart-from-offsets", "new-state", "blue-green", "refused"
]
# The job is not touched.
UNTOUCHED = ("none", "hot")


@dataclass(frozen=True, slots=True)
class Change:
    """The impact of a change and why, one sentence."""

    kind: ChangeClass
    reason: str


# Names of one attempt, and words for people: no part of what the job does.
_IDENTITY = {"query_id": "", "query_name": "", "attempt": 0, "fencing_token": "", "generation": 0}
# What other queries are part of the job says the application (services.applications.joint).
_WORDS: dict[str, Any] = {
    "checkpoint": "",
    "mode_reason": "",
    "state": {},
    "leads": [],
    "led_by": None,
    "places": [],
}
_OTHER_KEYS = (
    "its record keys get another form, so what was written under the old ones is neither replaced nor taken"
    " back: let a new query write a new topic to be rid of it"
)
_PARTS = {
    "from": "what is read, joined or windowed differs",
    "filter": "the filter before the state differs, and the state holds rows of the old one",
    "keys": "the rows are grouped by other keys",
    "aggregates": "the aggregates differ, or their order, in which the state holds them",
    "columns": "the joined rows are kept with other columns",
    "output": "groups are written at other times",
    "form": "an earlier release made the state, and did not note all that it is made of",
}


def changed_kind(old: QueryKind, new: QueryKind) -> Change | None:
    """The refusal of a statement of another kind."""
    if old is new:
        return None
    what = f"the query is a {old.value}, the new statement a {new.value}"
    return Change("refused", f"{what}: delete it and create it again")


def classify(old: JobSpec, new: JobSpec) -> Change:
    """Compare two versions of a query's job.

    ``restart-from-offsets`` and ``restart-keep-state`` keep the checkpoint; ``new-state`` starts with an
    empty one at the starting positions. State is kept only where Spark can continue with it as if the
    new version had written it. Where record keys get another form, the reason says so, whatever the class.
    """
    change = _classified(old, new)
    keys = _keys(old), _keys(new)
    if None in keys or keys[0] == keys[1] or change.kind in (*UNTOUCHED, "refused"):
        return change
    return Change(change.kind, f"{change.reason}; {_OTHER_KEYS}")


def _classified(old: JobSpec, new: JobSpec) -> Change:
    if _seen(old) == _seen(new):
        return Change("hot", "the job stays the same: it is not restarted")
    if _seen(_begun(old)) == _seen(_begun(new)):
        return Change("hot", "starting positions count at the first start only: the job is not restarted")
    if old.sink.relation != new.sink.relation:
        return Change("refused", "a query cannot change its sink: delete it and create it again")
    if (old.sink.store.name, old.sink.entity) != (new.sink.store.name, new.sink.entity):
        return Change("refused", "a query cannot change its topic: delete it and create it again")
    left = [s for s in old.sources if s.feed and _place(s) not in [_place(n) for n in new.sources]]
    if left:
        what = f"the replication slot of {left[0].entity} in store {left[0].store.name} would stay behind"
        return Change("refused", f"{what}: delete the query and create it again")
    if [_place(s) for s in old.sources] != [_place(s) for s in new.sources]:
        return Change("new-state", "the sources differ, so the saved offsets do not fit")
    if [_feed(s) for s in old.sources] != [_feed(s) for s in new.sources]:
        return Change("new-state", "another replication slot is read, which does not fit the saved offsets")
    if (old.sink.view or new.sink.view) and _shape(old) != _shape(new):
        return Change("new-state", "the view's columns, key or retention differ, so it is filled again")
    if old.mode != new.mode:
        return Change("new-state", "real-time and micro-batch jobs do not share a checkpoint")
    if [s.log_entity is None for s in old.sources] != [s.log_entity is None for s in new.sources]:
        return Change("new-state", "a log of undecodable records reads its source a second time")
    if bool(old.lookups) != bool(new.lookups) and len(new.sources) > 1:
        what = "without tables to look up in, several sources are read in another way"
        return Change("new-state", f"{what}, so the saved offsets may not fit")
    if not (keeps_state(old) or keeps_state(new)):
        return Change("restart-from-offsets", "the query is stateless: it continues from its saved offsets")
    return _of_state(old, new)


def _of_state(old: JobSpec, new: JobSpec) -> Change:
    if keeps_state(old) != keeps_state(new):
        what = "keeps state now" if keeps_state(new) else "keeps no state any more"
        return Change("new-state", f"the query {what}, which its checkpoint is not made for")
    if (old.output_mode, _operator(old), old.distinct) != (new.output_mode, _operator(new), new.distinct):
        if all(job.operator is not None and job.operator.pattern is not None for job in (old, new)):
            return Change("new-state", "the pattern differs, and the state holds rows for the old one")
        return Change("new-state", "another kind of state is kept")
    if _functions(old) != _functions(new):
        return Change("new-state", "other functions, or functions of other types, are called")
    differing = next(filter(None, map(_difference, old.sources, new.sources)), None)
    if differing is not None:
        return Change("new-state", differing)
    if bool(old.sink.key_columns) != bool(new.sink.key_columns) and (old.distinct or "columns" in old.state):
        # Spark keeps what is read behind: records pass their key on only where columns do not make it.
        return Change(
            "new-state", "records that wait have their keys in the state only if these are passed on"
        )
    # A pattern's SQL reads its matches; what a match gives stands in the pattern.
    filled_otherwise = new.sink.view is not None and old.operator != new.operator
    if (
        old.sql == new.sql
        and not filled_otherwise
        and not (old.distinct and old.sink.columns != new.sink.columns)
    ):
        return Change("restart-keep-state", "only settings outside the state differ")
    if new.sink.view is not None:
        return Change("new-state", "the view is filled again: all of its rows must be of the new statement")
    if not old.state or not new.state or old.distinct or new.functions:
        return Change("new-state", "the query keeps state, which another SQL text cannot read")
    for part in dict.fromkeys(["form", *old.state, *new.state]):
        if old.state.get(part) != new.state.get(part):
            return Change("new-state", _PARTS.get(part, "the state is of another shape"))
    return Change(
        "restart-keep-state",
        "the state stays as it is; what was written before keeps its old form until it is written again",
    )


def _seen(job: JobSpec) -> JobSpec:
    """What the job does."""
    return job.model_copy(update={**_IDENTITY, **_WORDS})


def _begun(job: JobSpec) -> JobSpec:
    """The job without what counts at its first start only."""
    unset: dict[str, Any] = {
        "starting_position": "latest",
        "starting_timestamp_ms": None,
        "starting_offsets": {},
    }
    return job.model_copy(update={"sources": [s.model_copy(update=unset) for s in job.sources]})


def _place(source: SourceSpec) -> tuple[str, str]:
    return source.store.name, source.entity


def _feed(source: SourceSpec) -> tuple[str | None, str | None] | None:
    return (source.feed.slot, source.feed.publication) if source.feed else None


def _keys(job: JobSpec) -> tuple[object, ...] | None:
    """What the bytes of record keys follow from besides the rows; None where the job makes no keys."""
    sink = job.sink
    if not sink.key_columns or sink.key_format is None:
        return None
    types = {column.name: column.type for column in sink.columns}
    if sink.key_format == "primitive":
        return "primitive", sink.key_type or types.get(sink.key_columns[0])
    # The text of a whole number does not show its type.
    found = [(name, types.get(name)) for name in sink.key_columns]
    shown = [(name, "BIGINT" if kind in INTEGERS else kind) for name, kind in found]
    return sink.key_format, shown, sink.key_schema


def _shape(job: JobSpec) -> tuple[object, ...]:
    retention = job.sink.view.retention_ms if job.sink.view is not None else None
    return job.sink.columns, job.sink.key_columns, retention


def _functions(job: JobSpec) -> list[tuple[object, ...]]:
    return [(f.name, f.arguments, f.returns) for f in job.functions]


def keeps_state(job: JobSpec) -> bool:
    """Whether the job's checkpoint holds more than offsets."""
    # Joins and windows have watermarks; groups without a window are the ones that are updated.
    if job.operator is not None or job.output_mode == "update" or job.distinct:
        return True
    return any(s.watermark_delay_ms is not None for s in job.sources)


def _operator(job: JobSpec) -> OperatorSpec | None:
    """What the state is made by: of a pattern's measures only whether matches are numbered."""
    operator = job.operator
    if operator is None or operator.pattern is None:
        return operator
    numbered = [["number"] for node in operator.pattern.measures if ["number"] in (node, node[-1])][:1]
    pattern = operator.pattern.model_copy(update={"measures": numbered, "results": {}})
    return operator.model_copy(update={"pattern": pattern})


def _difference(old: SourceSpec, new: SourceSpec) -> str | None:
    """Why rows of the new source do not fit with those in the state."""
    if old.timestamp != new.timestamp or old.timestamp_format != new.timestamp_format:
        return "event time comes from another column"
    if old.primary_key != new.primary_key:
        return "a source has another primary key"
    if new.columns[: len(old.columns)] != old.columns:
        return "the columns of a source differ"
    if (old.key_only, old.headers_column) != (new.key_only, new.headers_column):
        return "a column of a source is read from another part of its records"
    if (old.watermark_delay_ms is None) != (new.watermark_delay_ms is None):
        return "event time decides about the state in one version only"
    if (old.idle_timeout_ms is None) != (new.idle_timeout_ms is None):
        # Ticks are a Spark source of their own, whose offsets stand in the checkpoint.
        return "a source reports its silences in one version only, so the saved offsets do not fit"
    return None
