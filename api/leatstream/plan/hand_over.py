"""Where one version of a query takes over from another: positions, and event time (docs/adr/0019)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

# Topic to partition to the next offset, of one source.
Positions = Mapping[str, Mapping[str, int]]


class Reached(BaseModel):
    """How far a job has come that has ended.

    Attributes:
        checkpoint: name of the checkpoint; another one counts batches from 0.
        batch: number of the last one, which is committed.
        offsets: where it has ended, of each topic that is read, in the order of Spark's log.
        watermark_us: the event time up to which results have been given, microseconds from the epoch; None
            for a job that has no watermark.
        next_watermark_us: the same of the batch that would follow.
        whole: whether it has ended between two batches; else a part of the next one may be written.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    checkpoint: str
    batch: int
    offsets: list[dict[str, dict[str, int]]]
    watermark_us: int | None = None
    next_watermark_us: int | None = None
    whole: bool = True


class HandOver(BaseModel):
    """Where a version begins to write.

    Attributes:
        checkpoint: name of its checkpoint; in another one it counts for nothing.
        batch: the last one that writes nothing. It is not left to Spark to plan it: it ends at ``offsets``
            and uses ``watermark_us``, which are those of the last batch of the version before.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    checkpoint: str
    batch: int
    offsets: list[dict[str, dict[str, int]]]
    watermark_us: int | None = None


def positions_in(line: str) -> dict[str, dict[str, int]] | None:
    """A source's line of Spark's offset log; None if it has no positions in topics, as a line of ticks."""
    try:
        positions = json.loads(line)
    except ValueError:  # "-": nothing was read of it yet
        return None
    if not isinstance(positions, dict) or not positions:
        return None
    parts = [one for one in positions.values() if isinstance(one, dict)]
    whole = len(parts) == len(positions) and all(isinstance(at, int) for one in parts for at in one.values())
    return positions if whole else None


def matched(own: Sequence[Positions], others: Sequence[Positions]) -> list[Positions] | None:
    """Of each the one of the same topic, in their order if it is read twice; None: the topics differ."""
    left, found = list(others), []
    for one in own:
        other = next((o for o in left if o.keys() == one.keys()), None)
        if other is None:
            return None
        left.remove(other)
        found.append(other)
    return None if left else found


def is_past(there: Sequence[Positions], here: Sequence[Positions]) -> bool:
    """Whether every partition of ``here`` has been read in ``there`` at least as far."""
    pairs = matched(here, there)
    return pairs is not None and all(
        other[topic].get(partition, -1) >= at
        for one, other in zip(here, pairs, strict=True)
        for topic, parts in one.items()
        for partition, at in parts.items()
    )


def covers(before: Reached, after: Reached) -> bool:
    """Whether ``after`` may take over where ``before`` has ended: it has neither read nor given more."""
    if not is_past(before.offsets, after.offsets):
        return False
    given, silent = before.watermark_us, after.next_watermark_us
    return given is None or silent is None or given >= silent
