"""The states of a query and its legal transitions; checked wherever a status is written.

::

    PENDING ----> STARTING ----> RUNNING ----> COMPLETED   all records are processed
       ^              |             |
       |              +-----+-------+
       |                    |
       +--------------------+   it ended, or a restart may cure its failure
       |                    +--> LOST      its driver ended without a report; after a pause STARTING
       |                    +--> FAILED    it failed for good, or too often in a row
       |                    v
       +---------------- STOPPING          it is not wanted any more, has changed, or its owner lost a right
       |                    |
       |                    v
       +---------------- STOPPED           wanted again: PENDING

A new query is PENDING, or STOPPED if it is not to run. COMPLETED and FAILED lead to PENDING when somebody
starts or changes the query, and to STOPPED when it is not wanted any more.

A driver holds the query in STARTING, RUNNING and STOPPING only. A query remains

- PENDING until a driver takes it; the pause after a failure is part of it,
- STARTING until its starting offsets are fixed,
- RUNNING until its job ends, fails, or the query is changed or stopped,
- STOPPING until its job has ended,
- LOST, after its driver ended without a report, until the pause is over,
- STOPPED, COMPLETED or FAILED until somebody changes or starts it.

``TRANSITIONS`` is the whole table, with the less common edges.
"""

from __future__ import annotations

from dataclasses import dataclass

from leatstream.errors import InternalError
from leatstream.model.objects import Query, QueryState

_S = QueryState


@dataclass(frozen=True, slots=True)
class Transition:
    """A change from one state to another and its cause; ``before`` is None for a new query."""

    before: QueryState | None
    after: QueryState
    when: str


TRANSITIONS: tuple[Transition, ...] = (
    Transition(None, _S.PENDING, "it is created, to run"),
    Transition(None, _S.STOPPED, "it is created, not to run"),
    Transition(_S.PENDING, _S.STARTING, "a driver has taken it"),
    Transition(_S.PENDING, _S.FAILED, "its topic or table cannot be created"),
    Transition(_S.PENDING, _S.STOPPED, "it is not wanted any more"),
    Transition(_S.STARTING, _S.RUNNING, "its starting offsets are fixed"),
    Transition(_S.STARTING, _S.STOPPING, "it is not wanted any more, or has changed"),
    Transition(_S.STARTING, _S.PENDING, "it ended, or failed in a way that a restart may cure"),
    Transition(_S.STARTING, _S.LOST, "its driver ended without a report"),
    Transition(_S.STARTING, _S.FAILED, "it failed for good, or too often in a row"),
    Transition(_S.STARTING, _S.STOPPED, "it ended while it was not wanted any more"),
    Transition(_S.RUNNING, _S.STOPPING, "it is not wanted any more, has changed, or is to start again"),
    Transition(_S.RUNNING, _S.PENDING, "it ended, or failed in a way that a restart may cure"),
    Transition(_S.RUNNING, _S.LOST, "its driver ended without a report"),
    Transition(_S.RUNNING, _S.FAILED, "it failed for good, or too often in a row"),
    Transition(_S.RUNNING, _S.STOPPED, "it ended while it was not wanted any more"),
    Transition(_S.STOPPING, _S.STOPPED, "its job has ended"),
    Transition(_S.STOPPING, _S.PENDING, "its job has ended, and it is to run again"),
    Transition(_S.STOPPING, _S.LOST, "its driver ended without a report, and it is to run again"),
    Transition(_S.STOPPING, _S.FAILED, "it failed while it stopped, and it was to run again"),
    Transition(_S.STOPPED, _S.PENDING, "it is to run again"),
    Transition(_S.STARTING, _S.COMPLETED, "it processed all records, and is to process no more"),
    Transition(_S.RUNNING, _S.COMPLETED, "it processed all records, and is to process no more"),
    Transition(_S.STOPPING, _S.COMPLETED, "it processed all records before it could stop"),
    Transition(_S.COMPLETED, _S.PENDING, "somebody starts it again, or changes it"),
    Transition(_S.COMPLETED, _S.STOPPED, "it is not wanted any more"),
    Transition(_S.LOST, _S.STARTING, "the pause is over and a driver has taken it"),
    Transition(_S.LOST, _S.PENDING, "it is to start again now, or its topic cannot be created yet"),
    Transition(_S.LOST, _S.FAILED, "its topic or table cannot be created"),
    Transition(_S.LOST, _S.STOPPED, "it is not wanted any more"),
    Transition(_S.FAILED, _S.PENDING, "somebody starts it again, or changes it"),
    Transition(_S.FAILED, _S.STOPPED, "it is not wanted any more"),
)
WITH_DRIVER = frozenset({_S.STARTING, _S.RUNNING, _S.STOPPING})
"""The states in which a driver holds the query; in the others none does."""
_LEGAL = frozenset((t.before, t.after) for t in TRANSITIONS)


def is_legal(before: QueryState | None, after: QueryState) -> bool:
    """Whether a query may change from one state to the other; staying is always legal."""
    return before is after or (before, after) in _LEGAL


def check_transition(before: Query | None, after: Query) -> None:
    """Raise InternalError for a status that the table does not allow; never a user's fault."""
    was, state = before.status.state if before is not None else None, after.status.state
    if not is_legal(was, state):
        raise InternalError("internal", f"Query {after.name} cannot go from {was} to {state}.")
    if before is not None and (was, before.status.driver_id) == (state, after.status.driver_id):
        return
    if (after.status.driver_id is not None) != (state in WITH_DRIVER):
        held = "a" if after.status.driver_id is not None else "no"
        raise InternalError("internal", f"Query {after.name} cannot be {state} with {held} driver.")
