"""Topics for records that cannot be read: which a job can write."""

from __future__ import annotations

from collections.abc import Sequence

from leatstream.connectors.registry import capabilities_of, kinds_that
from leatstream.errors import Faults
from leatstream.model.access import ENTITY_PRIVILEGES, Privilege
from leatstream.model.names import quote
from leatstream.plan.job_spec import SinkSpec
from leatstream.plan.logical import LogicalPlan
from leatstream.services.environment.desk import Desk, denied, desk_of
from leatstream.services.planning.live_stores import LiveStores
from leatstream.sql.source_properties import SourceOptions


def check_error_logs(
    live: LiveStores, logical: LogicalPlan, options: Sequence[SourceOptions], sink: SinkSpec
) -> None:
    """Check the log topics of a plan's sources.

    A job writes to one store only, in one batch with its results, so a log lies in the sink's store.

    Args:
        live: stores, asked once each.
        logical: the bound SELECT.
        options: of each source, in the order of its scans.
        sink: of the job.

    Raises:
        AccessError: permission-denied, to write to a log.
        RequestError: a log in another store, or that does not exist, or is read or written by the query.
        StoreError: the store cannot be asked.
    """
    faults, desk = Faults(), desk_of(live.view.unit)
    lacking: list[tuple[Privilege, str]] = []
    for scan, option in zip(logical.streams, options, strict=True):
        topic = option.log_topic
        if topic is None:
            continue
        kind, store = sink.store.kind, sink.store.name
        taken = [(store, sink.entity), *((s.relation.store, s.relation.entity) for s in logical.scans)]
        if logical.operator is not None or logical.pattern is not None or logical.lookups:
            what = "read changelogs, join tables or match patterns"
            detail = f"IGNORE_AND_LOG is not supported in queries that {what}."
            faults.add("unsupported", detail, position=scan.position, hint="Write IGNORE.")
        elif not capabilities_of(kind).error_log or option.log_store not in (None, store):
            fit = kinds_that("error_log")
            detail = f"The log of undecodable records lies in the sink's store '{store}', one of kind {fit}."
            hint = "Write IGNORE, or leave the log's store out."
            faults.add("unsupported", detail, position=scan.position, hint=hint)
        elif (store, topic) in taken:
            detail = f"The log topic '{topic}' is read or written by the query itself."
            faults.add("invalid-property", detail, position=scan.position)
        elif live.entity(store, topic) is None or _is_hidden(desk, store, topic):
            detail = f"The log topic '{topic}' does not exist in store '{store}'."
            hint = f"CREATE ENTITY {topic} IN STORE {store}"
            faults.add("invalid-property", detail, position=scan.position, hint=hint)
        else:
            lacking += _missing(desk, store, topic, Privilege.WRITE_ENTITY)
    faults.raise_if_any()
    if desk is not None and lacking:
        raise denied(desk.who.role, lacking)


def _is_hidden(desk: Desk | None, store: str, topic: str) -> bool:
    return all(_missing(desk, store, topic, one) for one in ENTITY_PRIVILEGES)


def _missing(desk: Desk | None, store: str, topic: str, privilege: Privilege) -> list[tuple[Privilege, str]]:
    """The privilege, if the principal lacks it on the log; a planned store is its own."""
    owner = None if desk is None else desk.owner("store", quote(store))
    if desk is None or owner is None:
        return []
    return desk.missing_on_entity(store, topic, [privilege], owner)
