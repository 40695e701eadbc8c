"""GENERATE: columns, or a whole CREATE STREAM, from the records that an entity holds."""

from __future__ import annotations

from typing import Any

from leatstream.connectors.entities import RecordsFrom
from leatstream.errors import Faults, RequestError
from leatstream.formats.sampling import Sample, sample_columns
from leatstream.model.names import PLAIN, quote
from leatstream.services.environment import Environment, Principal
from leatstream.services.relations import entities
from leatstream.services.relations.record_streams import RecordsWanted
from leatstream.services.statements.printed_records import IDLE_SECONDS, LIMIT, limit_of
from leatstream.sql.reserved_words import RESERVED
from leatstream.sql.statements import Properties


def sample(env: Environment, who: Principal, store: str, entity: str, properties: Properties) -> Sample:
    """Look at an entity's oldest records.

    Args:
        env: the environment.
        who: who asks.
        store: name of the entity's store.
        entity: its name.
        properties: of the statement.

    Raises:
        RequestError: ``invalid-property``; ``validation`` when there is no JSON object among the records.
        StoreError: entity-not-found, or what the store says.
    """
    begin = RecordsFrom(beginning=True)
    wanted = RecordsWanted(begin, limit=_limit(properties), idle_timeout=IDLE_SECONDS)
    found = entities.read_records(env, who, store, entity, wanted)
    result = sample_columns(record.value for record in found if record is not None)
    if not result.columns:
        seen = result.records + result.skipped
        why = (
            f"none of its first {seen} records is a JSON object with fields"
            if seen
            else "it holds no records"
        )
        detail = f"No columns can be inferred from entity '{entity}': {why}."
        raise RequestError("validation", detail, hint="Name the columns yourself in CREATE STREAM.")
    return result


def columns_table(result: Sample) -> tuple[list[dict[str, str]], list[list[Any]]]:
    """One row per column: name, type, and in how many of the records it was null or absent."""
    heads = [{"name": n, "type": "VARCHAR"} for n in ("column", "type")]
    heads += [{"name": n, "type": "BIGINT"} for n in ("nulls", "records")]
    return heads, [[c.name, str(c.type), result.nulls[c.name], result.records] for c in result.columns]


def template(store: str, entity: str, result: Sample, value_format: str = "json") -> str:
    """A CREATE STREAM that reads the entity, ready to be edited and run.

    Args:
        store: name of the entity's store.
        entity: its name.
        result: what its records look like.
        value_format: of its records.
    """
    columns = ",\n".join(f"  {_name(c.name)} {c.type}" for c in result.columns)
    texts = {"store": _store(store), "topic": _text(entity), "value.format": _text(value_format)}
    properties = ", ".join(f"'{key}' = {value}" for key, value in texts.items())
    name = entity.rsplit(".", 1)[-1].lower()
    return f"CREATE STREAM {_name(name)} (\n{columns}\n) WITH ({properties});"


def _name(name: str) -> str:
    """The name as SQL reads it back: reserved words are quoted too."""
    return '"' + name + '"' if name in RESERVED and PLAIN.match(name) else quote(name)


def _store(name: str) -> str:
    return _text(name) if PLAIN.match(name) else quote(name)


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _limit(properties: Properties) -> int:
    faults = Faults()
    for key, value in properties.items():
        if key != LIMIT:
            detail = f"Property {key} is not known here; known: {LIMIT}."
            faults.add("invalid-property", detail, position=value.key_position or value.position)
    limit = limit_of(properties, faults)
    faults.raise_if_any()
    return limit
