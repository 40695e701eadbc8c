"""PRINT: a few records of an entity as a table."""

from __future__ import annotations

import base64

from leatstream.connectors.entities import Record, RecordsFrom
from leatstream.connectors.registry import connector_classes
from leatstream.errors import Faults
from leatstream.model.instants import iso, read_milliseconds
from leatstream.model.names import did_you_mean
from leatstream.services.environment import Environment, Principal
from leatstream.services.nouns.stores import get_store
from leatstream.services.relations import entities
from leatstream.services.relations.record_streams import RecordsWanted
from leatstream.services.statements.result_tables import Table
from leatstream.sql.source_properties import POSITION, POSITION_TIMESTAMP
from leatstream.sql.statements import Properties, Value
from leatstream.views.faults import gathered

BEGINNING, SINCE, PARTITION, OFFSET, LIMIT = "from_beginning", "since", "partition", "offset", "limit"
PRINT_PROPERTIES = (BEGINNING, SINCE, PARTITION, OFFSET, LIMIT)
_LIMIT, _MOST = 100, 10_000
IDLE_SECONDS = 2.0
_LONG = "Give a smaller 'limit'; leat print and GET …/records show records one by one as they come."
# What those write who know the properties of a query's sources.
_OF_SOURCES = {
    POSITION: f"Use '{BEGINNING}', or '{SINCE}' with a time.",
    POSITION_TIMESTAMP: f"Use '{SINCE}' with the time.",
}


def wanted_of(properties: Properties) -> RecordsWanted:
    """Which records a PRINT shows.

    Raises:
        RequestError: ``invalid-property`` with every fault at its place.
    """
    faults = Faults()
    for key, value in properties.items():
        if key not in PRINT_PROPERTIES:
            hint = _OF_SOURCES.get(key) or did_you_mean(key, PRINT_PROPERTIES)
            known = ", ".join(PRINT_PROPERTIES)
            detail = f"Property {key} is not known here; known: {known}."
            faults.add("invalid-property", detail, position=value.key_position, hint=hint)
    start = _start(properties, faults)
    limit = limit_of(properties, faults)
    faults.raise_if_any()
    return RecordsWanted(start, limit=limit, idle_timeout=IDLE_SECONDS)


def limit_of(properties: Properties, faults: Faults) -> int:
    """The most records that a statement reads of an entity; a wrong one is a fault."""
    wrong = f"'{LIMIT}' must be a number from 1 to {_MOST}."
    return _whole(properties.get(LIMIT), wrong, (1, _MOST), faults) or _LIMIT


def _start(properties: Properties, faults: Faults) -> RecordsFrom:
    flag, since, partition, offset = (properties.get(k) for k in (BEGINNING, SINCE, PARTITION, OFFSET))
    beginning = flag is not None and str(flag.value).lower() != "false"
    given = [name for name, one in ((SINCE, since), (OFFSET, offset)) if one is not None]
    if beginning:
        given.insert(0, BEGINNING)
    if len(given) > 1:
        detail = f"Reading begins at one place, not at {' and '.join(map(repr, given))}."
        faults.add("invalid-property", detail, position=properties[given[-1]].key_position)
    if offset is not None and partition is None:
        detail = f"'{OFFSET}' is a place in one partition."
        faults.add("invalid-property", detail, position=offset.key_position, hint=f"Give '{PARTITION}' too.")
    return RecordsFrom(
        beginning,
        since=_time(since, faults),
        partition=None if partition is None else str(partition.value),
        offset=_whole(offset, f"'{OFFSET}' must be a whole number from 0.", (0, 2**63 - 1), faults),
    )


def _time(value: Value | None, faults: Faults) -> int | None:
    if value is None:
        return None
    try:
        return read_milliseconds(value.value if type(value.value) is int else str(value.value))
    except ValueError as error:
        faults.add("invalid-property", f"'{SINCE}' {error}.", position=value.position)
        return None


def _whole(value: Value | None, wrong: str, bounds: tuple[int, int], faults: Faults) -> int | None:
    if value is None:
        return None
    found = value.value
    if type(found) is not int or not bounds[0] <= found <= bounds[1]:
        faults.add("invalid-property", wrong, position=value.position)
        return None
    return found


def printed(env: Environment, who: Principal, store: str, entity: str, properties: Properties) -> Table:
    """Rows of PRINT: what is there now, at most ``limit`` records; the records route follows.

    Args:
        env: the environment.
        who: who asks.
        store: name of the entity's store.
        entity: its name.
        properties: of the statement.

    Raises:
        RequestError: wrong properties, or records that are too long together.
    """
    wanted = wanted_of(properties)
    kind = connector_classes()[get_store(env, who, store).kind]
    # Rows of a table have no place and no time of their own.
    columns = [] if kind.tables else _places(numbered=kind.capabilities.positions)
    columns += [{"name": name, "type": "VARCHAR"} for name in ("key", "value")]
    records = entities.read_records(env, who, store, entity, wanted)
    rows = (_row(record, placed=not kind.tables) for record in records if record is not None)
    return columns, [list(row) for row in gathered(rows, wanted.limit or _LIMIT, _LONG)]


def _places(*, numbered: bool) -> list[dict[str, str]]:
    partition, offset = ("INTEGER", "BIGINT") if numbered else ("VARCHAR", "VARCHAR")
    types = {"partition": partition, "offset": offset, "timestamp": "TIMESTAMP_LTZ"}
    return [{"name": name, "type": kind} for name, kind in types.items()]


def _row(record: Record, *, placed: bool) -> tuple[object, ...]:
    at = None if record.timestamp is None else iso(record.timestamp)
    place = (record.partition, record.offset, at) if placed else ()
    return (*place, _shown(record.key), _shown(record.value))


def _shown(raw: bytes | None) -> str | None:
    """A record's bytes for people: text if it is UTF-8, else base64 with a prefix."""
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(raw).decode()
