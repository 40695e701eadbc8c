"""Sources that are tables: how a job reads their changes, and what is deleted with the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leatstream.errors import Faults
from leatstream.model.names import quote
from leatstream.model.objects import Query, QueryState
from leatstream.plan.job_spec import READER_KIND, ChangeFeed, JobSpec
from leatstream.plan.logical import LogicalPlan, Scan
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, reader_prefix
from leatstream.services.planning.live_stores import LiveStores
from leatstream.sql.source_properties import FEED, SourceOptions

FAR_BEHIND, NEARLY_LOST = 1 << 30, 256 << 20
"""Bytes of log kept for a slot, and bytes left before it is lost, at which users are warned."""


def change_feeds(
    live: LiveStores, logical: LogicalPlan, options: Sequence[SourceOptions], sink_kind: str
) -> list[ChangeFeed | None]:
    """For each scan how its table's changes are read; None for scans of other entities.

    Args:
        live: stores, asked once each.
        logical: the bound SELECT.
        options: of each source, in the order of its scans.
        sink_kind: kind of the sink's store.

    Raises:
        RequestError: ``unsupported`` or ``invalid-property``, with every fault.
    """
    faults = Faults()
    slots: set[tuple[str, str]] = set()
    found: list[ChangeFeed | None] = []
    for scan, option in zip(logical.streams, options, strict=True):
        store = live.store(scan.relation.store)
        connector_class = live.env.connector_classes.get(store.kind)
        if connector_class is None or not connector_class.capabilities.cdc:
            found.append(None)
            _refuse_feed_properties(scan, store.kind, faults)
            continue
        found.append(
            ChangeFeed(
                slot=option.slot, publication=option.publication, ignore_truncates=option.ignore_truncates
            )
        )
        if sink_kind == READER_KIND:
            faults.add(
                "unsupported",
                f"{scan.relation.fqn} is read by its changes, which a SELECT that nobody keeps cannot do.",
                position=scan.position,
                hint="Write them into a stream or a materialized view; PRINT ENTITY shows the table's rows.",
            )
        if option.starting_position == "timestamp":
            detail = (
                f"The changes of {scan.relation.fqn} cannot be read from a time on: nobody has kept them."
            )
            hint = "'earliest' reads the table's rows, then its changes; 'latest' the changes from now on."
            faults.add("invalid-property", detail, position=scan.position, hint=hint)
        if option.slot is not None and (store.name, option.slot) in slots:
            detail = (
                f"The slot {option.slot} of store {quote(store.name)} is read twice; a slot has one reader."
            )
            faults.add("invalid-property", detail, position=scan.position)
        slots.add((store.name, option.slot or scan.view))
    faults.raise_if_any()
    return found


def refuse_second_readers(unit: UnitOfWork, job: JobSpec, own: Query | None) -> None:
    """Of two queries with one slot each would get a part of the changes.

    Args:
        unit: an open unit of work.
        job: of the planned query.
        own: the query that it replaces, if any.

    Raises:
        RequestError: invalid-property, for a slot that another query reads, or reads when it is started.
    """
    wanted = _named_slots(job.model_dump(mode="json"))
    if not wanted:
        return
    faults = Faults()
    for query in unit.unfiltered.queries.page(limit=100_000):
        if own is not None and query.meta.id == own.meta.id:
            continue
        for slot in sorted(wanted.keys() & _named_slots(query.job).keys()):
            reader = (
                f"The slot {slot[-1]} of store {quote(wanted[slot])} is read by query {quote(query.name)}"
            )
            if query.deleting:
                faults.add(
                    "invalid-property", f"{reader}, which is being deleted.", hint="Wait until it is gone."
                )
                continue
            faults.add(
                "invalid-property",
                f"{reader}; a slot has one reader.",
                hint="Name another slot, or none: then the query has one of its own.",
            )
    faults.raise_if_any()


def _named_slots(job: Mapping[str, Any]) -> dict[tuple[str, int, str], str]:
    """Stores' names by server and slot, which is a server's whatever store and database it is read by."""
    found = {}
    for source in job.get("sources", ()):
        slot, store = (source.get("feed") or {}).get("slot"), source["store"]
        if slot:
            server = store["config"]
            found[(str(server["host"]), int(server.get("port", 5432)), str(slot))] = str(store["name"])
    return found


def _refuse_feed_properties(scan: Scan, kind: str, faults: Faults) -> None:
    for key in FEED:
        if key in scan.properties:
            detail = f"{key!r} is for tables of PostgreSQL; {scan.relation.fqn} is in a store of kind {kind}."
            faults.add("invalid-property", detail, position=scan.position)


def behind(query: Query) -> list[str]:
    """What keeps a database from deleting its log, one sentence for each slot that is far behind.

    A query that does not run is always reported: nobody reads its slots.
    """
    found: list[str] = []
    if query.status.state in (QueryState.STOPPED, QueryState.FAILED):
        feeds = [s for s in query.job.get("sources", ()) if s.get("feed")]
        return [
            f"store {quote(s['store']['name'])} keeps its log for the slot of {s['entity']} while the query "
            "does not run; deleting the query drops the slot"
            for s in feeds
        ]
    for source in query.status.metrics.get("sources") or ():
        slot = source.get("slot")
        if not slot:
            continue
        kept, left = int(slot.get("kept_bytes") or 0), slot.get("left_bytes")
        if kept >= FAR_BEHIND or (left is not None and left < NEARLY_LOST):
            more = f"; it is lost after {left} more" if left is not None else ""
            found.append(f"slot {slot.get('name')} makes the server keep {kept} bytes of its log{more}")
    return found


def forget_readers(env: Environment, query: Query) -> None:
    """Remove what the query's readers have created in stores of tables.

    Raises:
        StoreError: a store does not answer; it would keep its log for a reader that never comes.
    """
    spec = JobSpec.model_validate(query.job)
    names = dict.fromkeys(source.store.name for source in spec.sources if source.feed is not None)
    for name in names:
        with env.open_unit(write=False) as unit:
            store = unit.stores.find(name)
        if store is not None:
            env.connect(store).forget_readers(reader_prefix(query))
