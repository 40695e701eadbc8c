"""What a person can do about a failure that only a person can cure, as commands to be copied."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from leatstream.connectors.registry import connector_classes
from leatstream.model.names import quote
from leatstream.model.objects import Query
from leatstream.plan.record_place import RecordPlace

_WHY = {
    "source-gone": "The checkpoint does not fit what the source has now",
    "checkpoint-damaged": "The checkpoint cannot be used any more; it is kept as it is",
}
_FULL = "Make room where checkpoints and the driver's files are; it starts again by itself."
_HANDLING = "'source.deserialization.error.handling'"
READ_IT = (
    f"Correct the columns of the relation, or skip all such records with {_HANDLING} = 'IGNORE', or with "
    "'IGNORE_AND_LOG', which keeps them in a topic."
)
# The entity does not exist now: a restart has nothing to read.
_GONE = frozenset(("SOURCE_ENTITY_GONE", "entity-not-found"))
_NO_SINK = frozenset(("SINK_ENTITY_GONE", "entity-not-found"))
_NO_ACCESS = frozenset(("store-auth-failed", "registry-auth-failed"))


def way_out(query: Query, error: Mapping[str, Any]) -> str | None:
    """The way out of a failure; None where there is nothing special."""
    code = str(error.get("code"))
    if code == "disk-full":
        return _FULL
    record = error.get("record")
    if record:
        return _past(query, RecordPlace(**record), undecodable=code == "undecodable-record")
    if code == "undecodable-record":
        return READ_IT
    if code == "job-failed":
        return _of_job(query, error)
    if code not in _WHY:
        return None
    feeds = any(source.get("feed") for source in query.job.get("sources", ()))
    if code == "source-gone" and error.get("condition") in _GONE:
        return _made_again(query, feeds=feeds)
    if feeds:
        return f"{_WHY[code]}: delete the query and create it again."
    return (
        f"{_WHY[code]}: RESTART QUERY {quote(query.name)} FROM EARLIEST, LATEST, TIMESTAMP '…' or OFFSETS "
        "'…'. DESCRIBE before it shows what is lost and what is repeated."
    )


def _of_job(query: Query, error: Mapping[str, Any]) -> str | None:
    """What to do about a job that no restart cures, by the condition."""
    name, condition = quote(query.name), error.get("condition")
    if error.get("retryable"):
        return None
    again = f"RESTART QUERY {name} (leat query start {shlex.quote(query.name)})"
    if condition in _NO_SINK:
        return _sink_made_again(query, again)
    if condition in _NO_ACCESS:
        return (
            "Correct the login (UPDATE STORE, UPDATE SCHEMA_REGISTRY) or its permissions there, then restart "
            f"every query that it has ended: RESTART QUERIES FAILED BY '{condition}' "
            f"(leat query restart --failed-by {condition})."
        )
    if error.get("expression"):
        return (
            "Change the statement so that it computes a value for every record (TRY_CAST, CASE): CREATE OR "
            "REPLACE, PUT and terraform apply start the query again from its checkpoint."
        )
    return f"Correct the cause, then {again}: the query continues from its checkpoint."


def _sink_made_again(query: Query, again: str) -> str:
    sink = query.job.get("sink") or {}
    store = sink.get("store") or {}
    kind = connector_classes().get(str(store.get("kind")))
    given = [one.name for one in kind.entity_properties] if kind is not None else []
    values = {name: query.effective[name].value for name in given if name in query.effective}
    clause = ", ".join(f"'{name}' = {value}" for name, value in values.items())
    create = f"CREATE ENTITY {quote(str(sink.get('entity')))} IN STORE {quote(str(store.get('name')))}"
    made = f"{create} WITH ({clause})" if clause else create
    noun, name = kind.entity_noun if kind is not None else "entity", quote(query.name)
    return (
        f"Create the {noun} again ({made}), then {again}: the query continues from its checkpoint. To write "
        f"earlier records again, as far as the sources have them: RESTART QUERY {name} FROM EARLIEST."
    )


def _past(query: Query, record: RecordPlace, *, undecodable: bool) -> str:
    """How to get past one record."""
    name = quote(query.name)
    cure = READ_IT if undecodable else "To read it, change the statement (TRY_CAST, CASE)."
    return (
        f"To skip this record: RESTART QUERY {name} SKIP RECORD '{record}'; in every query that it has ended:"
        f" RESTART QUERIES FAILED BY '{record}' SKIP RECORD (leat query restart {shlex.quote(query.name)} "
        f"--skip-record {record}; leat query restart --skip-record {record}). {cure}"
    )


def _made_again(query: Query, *, feeds: bool) -> str:
    sources = {(s.get("entity"), (s.get("store") or {}).get("name")): s for s in query.job.get("sources", ())}
    drop = f"leat query delete {shlex.quote(query.name)}"
    if feeds or len(sources) != 1:
        then = "delete the query and create it again" if feeds else f"restart it, or delete it: {drop}"
        return f"Create the source again, then {then}."
    (((entity, store), source),) = sources.items()
    kind = connector_classes().get(str((source.get("store") or {}).get("kind")))
    make = f"Create {entity} again in store {store}"
    if kind is not None and kind.entity_properties:
        needed = ", ".join(f"'{one.name}' = …" for one in kind.entity_properties)
        make = (
            f"Create the {kind.entity_noun} again (CREATE ENTITY {quote(str(entity))} IN STORE "
            f"{quote(str(store))} WITH ({needed}))"
        )
    return (
        f"{make}, then RESTART QUERY {quote(query.name)} FROM EARLIEST; or delete the query, which has "
        f"nothing to read: {drop}."
    )
