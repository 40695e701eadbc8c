"""Row counts of a batch still at work: real-time mode reports a batch only when it ends, after a minute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = "number of output rows"


@dataclass(frozen=True, slots=True)
class LiveCounts:
    """Rows of the running batch; ``written`` is None where the plan does not show it."""

    execution: int
    read: int
    written: int | None


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of the running plan, from the sink to the sources, with its row count if it counts."""

    name: str
    rows: int | None
    counts: bool


def counts_of(execution: int, nodes: list[Node]) -> LiveCounts:
    """Read the counts off the plan's operators.

    Projections keep the number of rows, so the first counting operator below the sink counts what is written.
    Behind a union it would be one branch only; there nothing is said.
    """
    read = sum(n.rows or 0 for n in nodes if n.name.endswith("StreamScan"))
    below = [n for n in nodes if not n.name.startswith("Write")]
    first = next((n for n in below if n.counts), None)
    plain = not any(n.name == "Union" or "Generate" in n.name or "Expand" in n.name for n in nodes)
    return LiveCounts(execution, read, (first.rows or 0) if first is not None and plain else None)


def newest(spark: SparkSession) -> int:
    """The number of the JVM's newest execution, whosever it is; -1 before there is one."""
    store = _store(spark)
    number = int(store.executionsCount())
    return int(store.executionsList(number - 1, 1).apply(0).executionId()) if number else -1


def look(spark: SparkSession) -> LiveCounts | None:
    """Counts of the newest execution (Spark's own figures, about a second old); None before there is one."""
    store, execution = _store(spark), newest(spark)
    if execution < 0:
        return None
    values = store.executionMetrics(execution)
    graph = store.planGraph(execution).allNodes()
    nodes: list[Node] = []
    for i in range(graph.size()):
        node = graph.apply(i)
        metrics = node.metrics()
        found = [metrics.apply(j) for j in range(metrics.size())]
        rows = next((m for m in found if m.name() == _ROWS), None)
        value = values.get(rows.accumulatorId()) if rows is not None else None
        shown = int(str(value.get()).replace(",", "")) if value is not None and value.isDefined() else None
        nodes.append(Node(node.name(), shown, rows is not None))
    return counts_of(execution, nodes)


def _store(spark: SparkSession) -> Any:
    session: Any = spark._jsparkSession
    return session.sharedState().statusStore()
