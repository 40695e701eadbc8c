"""Source properties: what may stand in FROM relation WITH (…)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from leatstream.connectors.registry import relation_words
from leatstream.errors import Faults
from leatstream.model.objects import Relation, RelationKind
from leatstream.sql.passes.columns import suggestion
from leatstream.sql.statements import Properties, Value

POSITION = "starting.position"
POSITION_TIMESTAMP = "starting.position.timestamp"
TIMESTAMP = "timestamp"
ON_ERROR = "source.deserialization.error.handling"
HISTORY = "history.retention.millis"
IDLE = "source.idle.timeout.millis"
DELAY = "source.watermark.delay.millis"
AHEAD = "source.timestamp.max.ahead.millis"
LOG_TOPIC = "source.deserialization.error.log.topic"
LOG_STORE = "source.deserialization.error.log.store"
SLOT = "postgresql.slot.name"
PLUGIN = "postgresql.decoding.plugin.name"
PUBLICATION = "postgresql.publication.name"
TRUNCATES = "postgresql.truncate.handling"
LOOKUP_TTL = "lookup.cache.ttl.millis"
FEED = (SLOT, PLUGIN, PUBLICATION, TRUNCATES)
KNOWN = (
    POSITION,
    POSITION_TIMESTAMP,
    TIMESTAMP,
    ON_ERROR,
    LOG_TOPIC,
    LOG_STORE,
    HISTORY,
    IDLE,
    DELAY,
    AHEAD,
    *FEED,
    LOOKUP_TTL,
)
# What names of slots begin with that belong to a query.
OWN_SLOTS = "leat_"
_SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}\Z")
MAX_DELAY_MS = 366 * 86_400_000
DEFAULT_HISTORY_MS = 7 * 86_400_000
DEFAULT_AHEAD_MS = 86_400_000
UNBUILT = {
    "source.deserialization.error.log.topic.partitions": "Make the topic first: CREATE ENTITY.",
    "source.deserialization.error.log.topic.replicas": "Make the topic first: CREATE ENTITY.",
    "source.deserialization.error.log.topic.shards": "The log is a Kafka topic.",
}
# The same as those of a relation's own timestamp column.
_TIME_KINDS = {"BIGINT", "TIMESTAMP", "TIMESTAMP_LTZ", "VARCHAR"}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Source properties, typed as ``plan.job_spec.SourceSpec`` takes them.

    Attributes:
        starting_position: None = not said.
        starting_timestamp_ms: epoch milliseconds; set exactly if the position is ``timestamp``.
        timestamp: column that gives event time instead of the relation's own.
        history_ms: how long a temporal join keeps old versions of a changelog's rows.
        idle_timeout_ms: after how long a silence the clock gives event time; None = never.
        watermark_delay_ms: how late a row may be; None = the server's setting.
        max_ahead_ms: how far event time may be ahead of a record's own time; None = however far.
        log_topic: where undecodable records are written; None = nowhere.
        log_store: its store; None = the sink's.
        slot, publication: of PostgreSQL; None = the query's own.
        ignore_truncates: whether a changelog passes over the emptying of its table.
    """

    starting_position: Literal["earliest", "latest", "timestamp"] | None = None
    starting_timestamp_ms: int | None = None
    on_error: Literal["terminate", "ignore"] = "terminate"
    timestamp: str | None = None
    history_ms: int = DEFAULT_HISTORY_MS
    idle_timeout_ms: int | None = None
    watermark_delay_ms: int | None = None
    max_ahead_ms: int | None = DEFAULT_AHEAD_MS
    log_topic: str | None = None
    log_store: str | None = None
    slot: str | None = None
    publication: str | None = None
    ignore_truncates: bool = False


def read_source_options(properties: Mapping[str, str]) -> SourceOptions:
    """Options from a scan's checked properties (``Scan.properties``)."""
    since = properties.get(POSITION_TIMESTAMP)
    return SourceOptions(
        starting_position=cast(Literal["earliest", "latest", "timestamp"] | None, properties.get(POSITION)),
        starting_timestamp_ms=int(since) if since is not None else None,
        on_error="terminate" if properties.get(ON_ERROR, "terminate") == "terminate" else "ignore",
        log_topic=properties.get(LOG_TOPIC),
        log_store=properties.get(LOG_STORE),
        timestamp=properties.get(TIMESTAMP),
        history_ms=int(properties.get(HISTORY, DEFAULT_HISTORY_MS)),
        idle_timeout_ms=int(properties[IDLE]) if IDLE in properties else None,
        watermark_delay_ms=int(properties[DELAY]) if DELAY in properties else None,
        max_ahead_ms=_ahead_of(properties.get(AHEAD)),
        slot=properties.get(SLOT),
        publication=properties.get(PUBLICATION),
        ignore_truncates=properties.get(TRUNCATES) == "ignore",
    )


def _ahead_of(text: str | None) -> int | None:
    return DEFAULT_AHEAD_MS if text is None else None if text == "none" else int(text)


def check_source_properties(given: Properties, relation: Relation, faults: Faults) -> dict[str, str]:
    """Check the WITH clause of one scan.

    Args:
        given: as written.
        relation: that is scanned.
        faults: takes what is wrong.

    Returns:
        canonical keys with canonical values, for ``read_source_options``; faults are noted in ``faults``.
    """
    found: dict[str, str] = {}
    for key, value in given.items():
        if key in UNBUILT:
            faults.add(
                "unsupported",
                f"The source property {key!r} is not supported.",
                position=value.key_position,
                hint=UNBUILT[key],
            )
        elif key not in KNOWN:
            hint = suggestion_of(key)
            detail = f"{key!r} is not a source property."
            faults.add("invalid-property", detail, position=value.key_position, hint=hint)
        elif (key == LOOKUP_TTL) != (relation.kind is RelationKind.TABLE):
            what = "is for tables" if key == LOOKUP_TTL else "has no meaning for a table"
            kind = relation.kind.value.replace("_", " ")
            detail = f"{key!r} {what}; {relation.fqn} is a {kind}."
            faults.add("invalid-property", detail, position=value.key_position)
        else:
            read = _READERS[key](value, relation, faults)
            if read is not None:
                found[key] = read
    _check_pair(given, found, faults)
    _check_log(given, found, relation, faults)
    return found


def suggestion_of(key: str) -> str:
    """What was probably meant, else the list."""
    if key in relation_words():
        return f"It is a property of the relation: CREATE STREAM … WITH ({key!r} = …)."
    near = suggestion(key, KNOWN)
    return near.replace('"', "'") if near else f"Available: {', '.join(KNOWN)}."


def _check_pair(given: Properties, found: dict[str, str], faults: Faults) -> None:
    wanted = found.get(POSITION) == "timestamp"
    if wanted and POSITION_TIMESTAMP not in given:
        faults.add(
            "invalid-property",
            f"{POSITION!r} = 'timestamp' needs {POSITION_TIMESTAMP!r}.",
            position=given[POSITION].position,
            hint=f"Add '{POSITION_TIMESTAMP}' = <epoch milliseconds>.",
        )
    if POSITION_TIMESTAMP in given and not wanted and (POSITION not in given or POSITION in found):
        faults.add(
            "invalid-property",
            f"{POSITION_TIMESTAMP!r} has a meaning only with {POSITION!r} = 'timestamp'.",
            position=given[POSITION_TIMESTAMP].key_position,
            hint=f"Add '{POSITION}' = 'timestamp'.",
        )


def _check_log(given: Properties, found: Mapping[str, str], relation: Relation, faults: Faults) -> None:
    logs = found.get(ON_ERROR) == "ignore_and_log"
    if logs and LOG_TOPIC not in given:
        detail = f"{ON_ERROR!r} = IGNORE_AND_LOG needs {LOG_TOPIC!r}."
        faults.add("invalid-property", detail, position=given[ON_ERROR].position)
    if logs and relation.kind is RelationKind.CHANGELOG:
        detail = f"{ON_ERROR!r} = IGNORE_AND_LOG is not supported for changelogs."
        faults.add("unsupported", detail, position=given[ON_ERROR].position, hint="Write IGNORE.")
    for key in (LOG_TOPIC, LOG_STORE):
        if key in given and not logs:
            detail = f"{key!r} has a meaning only with {ON_ERROR!r} = IGNORE_AND_LOG."
            faults.add("invalid-property", detail, position=given[key].key_position)


def _starting_position(value: Value, _: Relation, faults: Faults) -> str | None:
    word = str(value.value).lower()
    if word in ("earliest", "latest", "timestamp"):
        return word
    detail = f"{POSITION!r} is 'earliest', 'latest' or 'timestamp'."
    hint = suggestion(word, ("earliest", "latest", "timestamp"))
    faults.add("invalid-property", detail, position=value.position, hint=hint)
    return None


def _starting_timestamp(value: Value, _: Relation, faults: Faults) -> str | None:
    text = str(value.value)
    if not isinstance(value.value, bool | float) and text.isascii() and text.isdecimal() and len(text) < 16:
        return str(int(text))
    detail = f"{POSITION_TIMESTAMP!r} must be a whole number of milliseconds since 1970."
    faults.add("invalid-property", detail, position=value.position)
    return None


def _timestamp(value: Value, relation: Relation, faults: Faults) -> str | None:
    name = str(value.value)
    column = relation.find_column(name)
    if column is None and value.kind == "string":
        column = relation.find_column(name.lower())
    if column is None:
        detail = f"{TIMESTAMP!r} names the column {name!r}, which {relation.fqn} does not have."
        hint = suggestion(name, [c.name for c in relation.columns])
        faults.add("invalid-property", detail, position=value.position, hint=hint)
        return None
    if column.type.kind not in _TIME_KINDS:
        faults.add(
            "invalid-property",
            f"{TIMESTAMP!r} names the column {name!r}, which is {column.type}.",
            position=value.position,
            hint="It takes a BIGINT (epoch milliseconds), TIMESTAMP, TIMESTAMP_LTZ or VARCHAR.",
        )
        return None
    return column.name


def _on_error(value: Value, _: Relation, faults: Faults) -> str | None:
    word = str(value.value).lower()
    if word in ("terminate", "ignore", "ignore_and_log"):
        return word
    detail = f"{ON_ERROR!r} is TERMINATE, IGNORE or IGNORE_AND_LOG."
    faults.add("invalid-property", detail, position=value.position)
    return None


def _name(value: Value, _: Relation, faults: Faults) -> str | None:
    if isinstance(value.value, str) and value.value:
        return value.value
    faults.add("invalid-property", "This takes a name.", position=value.position)
    return None


def _slot(value: Value, _: Relation, faults: Faults) -> str | None:
    text = str(value.value)
    if isinstance(value.value, str) and _SLOT_NAME.match(text) and not text.startswith(OWN_SLOTS):
        return text
    detail = f"{SLOT!r} has 1 to 63 of the characters a-z, 0-9 and '_', and does not begin with {OWN_SLOTS}."
    faults.add("invalid-property", detail, position=value.position)
    return None


def _plugin(value: Value, _: Relation, faults: Faults) -> str | None:
    if str(value.value).lower() == "pgoutput":
        return "pgoutput"
    faults.add("unsupported", f"{PLUGIN!r} is 'pgoutput'.", position=value.position)
    return None


def _truncates(value: Value, relation: Relation, faults: Faults) -> str | None:
    word = str(value.value).lower()
    if word not in ("fail", "ignore"):
        faults.add("invalid-property", f"{TRUNCATES!r} is 'fail' or 'ignore'.", position=value.position)
        return None
    if relation.kind is not RelationKind.CHANGELOG:
        detail = f"{TRUNCATES!r} is for changelogs; {relation.fqn} is a stream, which has a row for it."
        faults.add("invalid-property", detail, position=value.key_position)
        return None
    return word


def _history(value: Value, relation: Relation, faults: Faults) -> str | None:
    if relation.kind is not RelationKind.CHANGELOG:
        detail = f"{HISTORY!r} is for changelogs, and {relation.fqn} is a stream."
        faults.add("invalid-property", detail, position=value.key_position)
        return None
    text = str(value.value)
    if not isinstance(value.value, bool | float) and text.isascii() and text.isdecimal() and len(text) < 14:
        return str(int(text))
    detail = f"{HISTORY!r} must be a whole number of milliseconds."
    faults.add("invalid-property", detail, position=value.position)
    return None


def _idle(value: Value, _: Relation, faults: Faults) -> str | None:
    return _millis(IDLE, value, 1, faults)


def _delay(value: Value, _: Relation, faults: Faults) -> str | None:
    return _millis(DELAY, value, 0, faults)


def _ahead(value: Value, _: Relation, faults: Faults) -> str | None:
    if str(value.value).lower() == "none":
        return "none"
    return _millis(AHEAD, value, 0, faults, or_else=", or NONE")


def _lookup_ttl(value: Value, _: Relation, faults: Faults) -> str | None:
    return _millis(LOOKUP_TTL, value, 0, faults)


def _millis(key: str, value: Value, least: int, faults: Faults, or_else: str = "") -> str | None:
    text = str(value.value)
    plain = text.isascii() and text.isdecimal() and len(text) < 14
    if plain and not isinstance(value.value, bool | float) and least <= int(text) <= MAX_DELAY_MS:
        return str(int(text))
    detail = f"{key!r} must be a whole number of milliseconds, {least} or more, at most 366 days{or_else}."
    faults.add("invalid-property", detail, position=value.position)
    return None


_READERS = {
    POSITION: _starting_position,
    POSITION_TIMESTAMP: _starting_timestamp,
    TIMESTAMP: _timestamp,
    ON_ERROR: _on_error,
    HISTORY: _history,
    LOG_TOPIC: _name,
    LOG_STORE: _name,
    IDLE: _idle,
    DELAY: _delay,
    AHEAD: _ahead,
    SLOT: _slot,
    PLUGIN: _plugin,
    PUBLICATION: _name,
    TRUNCATES: _truncates,
    LOOKUP_TTL: _lookup_ttl,
}
