"""The words of QUERY WITH: what a query's properties mean, and what is wrong with them."""

from __future__ import annotations

from typing import Any, Literal

from leatstream.connectors.registry import capabilities_of, kinds_that
from leatstream.errors import Faults, RequestError
from leatstream.model.names import MAX_LENGTH, quote
from leatstream.model.objects import Relation, RelationKind
from leatstream.plan.job_spec import Isolation, Mode
from leatstream.sql.statements import Properties

NAME = "query.name"
MODE = "mode"
TRIGGER = "query.trigger"
TARGET = "query.target.batch.seconds"
INTERVAL = "query.batch.interval.seconds"
REPLACE_MODE = "replace.mode"
DRIVER = "query.driver"
JSON_READER = "query.json.reader"
QUERY_PROPERTIES = (
    *(NAME, MODE, "from.savepoint", "from.query", TRIGGER, TARGET, INTERVAL, REPLACE_MODE, DRIVER),
    JSON_READER,
)
# Of the properties that are one word, the one that counts when nothing is said first.
_WORDS = {
    MODE: ("auto", "realtime", "micro_batch"),
    TRIGGER: ("continuous", "available_now"),
    REPLACE_MODE: ("in_place", "blue_green"),
    DRIVER: (Isolation.DEDICATED.value, Isolation.SHARED.value),
    JSON_READER: ("auto", "workers", "expressions"),
}
# Of DeltaStream, which the dialect follows.
_NOT_BUILT = {
    "state.ttl.millis": "State ends with the watermark, or stays; a materialized view has 'retention'."
}
IN_PLACE = (
    "Leave 'replace.mode' out: the query then stops, and its next version continues where it can, else it "
    "writes everything again."
)
_RESUME = "resume.from.query."
_NO_NAME = f"{NAME} must be a string of 1 to {MAX_LENGTH} characters, without control characters and ${{."
_DEFAULT_TARGET_MS, _LEAST_TARGET, _MOST_SECONDS = 5_000, 0.1, 3_600
# Small batches back to back use up a core, however few records there are.
_DEFAULT_INTERVAL_MS = 500


def check_words(properties: Properties) -> None:
    """RequestError invalid-property: each property that no query has, each word that is none of its own."""
    faults = Faults()
    known = ", ".join(QUERY_PROPERTIES)
    for name, value in properties.items():
        if name in _NOT_BUILT or name.startswith(_RESUME):
            hint = _NOT_BUILT.get(name, "Write 'from.query', or 'from.savepoint'.")
            faults.add("unsupported", f"{name} is not supported.", hint=hint, **value.place)
        elif name not in QUERY_PROPERTIES:
            detail = f"Query property {name} does not exist; known: {known}."
            faults.add("invalid-property", detail, **value.place)
        elif name in _WORDS and str(value.value).lower() not in _WORDS[name]:
            faults.add("invalid-property", _choice(name), **value.place)
        elif name == NAME and not _is_name(value.value):
            faults.add("invalid-property", _NO_NAME, **value.place)
    faults.raise_if_any()


def _is_name(value: Any) -> bool:
    """Whether a path and SQL can say it."""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_LENGTH or "${" in value:
        return False
    return not any(ord(c) < 32 or ord(c) == 127 for c in value)


def refuse_other_name(properties: Properties, name: str) -> None:
    """RequestError invalid-property where the statement gives its query another name than its address has."""
    if query_name(properties) not in (None, name):
        raise RequestError(
            "invalid-property",
            f"{NAME} is another name than {quote(name)}, which the query has by its address.",
            hint=f"Leave '{NAME}' out.",
            **properties[NAME].place,
        )


def query_name(properties: Properties) -> str | None:
    """The name that the statement gives its query."""
    value = properties.get(NAME)
    return str(value.value) if value is not None else None


def wanted_mode(properties: Properties) -> str:
    """``auto``, ``realtime`` or ``micro_batch``; RequestError invalid-property."""
    return _word(properties, MODE)


def available_now(properties: Properties) -> bool:
    """Whether the query processes the existing records and completes; RequestError invalid-property."""
    return _word(properties, TRIGGER) == "available_now"


def is_blue_green(properties: Properties) -> bool:
    """Whether it is to run beside the one before until it has caught up; RequestError invalid-property."""
    return _word(properties, REPLACE_MODE) == "blue_green"


def unswappable(sink: Relation, store_kind: str) -> str | None:
    """Why a query that writes such a relation cannot be replaced by one beside it; None if it can.

    Args:
        sink: the relation.
        store_kind: kind of its store.
    """
    can = capabilities_of(store_kind)
    if sink.kind is RelationKind.MATERIALIZED_VIEW:
        if not sink.store or can.view_swap:
            return None
        return f"a store of kind {store_kind} cannot show the rows of one version after those of another"
    if sink.kind is RelationKind.STREAM and can.hand_over:
        return None
    if sink.kind is RelationKind.CHANGELOG:
        return (
            "in a changelog the rows of keys that do not change any more would stay those of the old version"
        )
    if sink.kind is RelationKind.TABLE:
        return "what the old version has written into a table would stay there"
    return (
        f"one version continues where the other ends only in stores of kind {kinds_that('hand_over')}, "
        f"and not in one of kind {store_kind}"
    )


def refuse_unswappable(properties: Properties, sink: Relation, store_kind: str) -> None:
    """RequestError unsupported where no query could take over from another.

    Args:
        properties: of the query.
        sink: the relation that it writes.
        store_kind: kind of the sink's store.
    """
    why = unswappable(sink, store_kind) if is_blue_green(properties) else None
    if why is not None:
        raise RequestError(
            "unsupported",
            f"A blue-green replacement is not possible: {why}.",
            hint=IN_PLACE,
            **properties[REPLACE_MODE].place,
        )


def isolation_of(properties: Properties) -> Isolation:
    """Whether the query may share a driver; RequestError invalid-property or unsupported."""
    isolation = Isolation(_word(properties, DRIVER))
    if isolation is Isolation.SHARED and wanted_mode(properties) == "realtime":
        raise RequestError(
            "unsupported",
            "A query in real-time mode holds task slots all the time, so it cannot share a driver.",
            hint=f"Leave '{DRIVER}' out, or '{MODE}'.",
            **properties[DRIVER].place,
        )
    return isolation


def json_reader(
    properties: Properties, mode: Mode, isolation: Isolation
) -> Literal["auto", "workers", "expressions"]:
    """What reads JSON records; RequestError invalid-property or unsupported.

    Args:
        properties: of the query.
        mode: of the job.
        isolation: of the job.
    """
    reader: Any = _word(properties, JSON_READER)
    if reader == "workers" and (mode is Mode.REALTIME or isolation is Isolation.SHARED):
        raise RequestError(
            "unsupported",
            "Python workers read records for a micro-batch query with a driver of its own only.",
            hint=f"Write '{MODE}' = 'micro_batch' without '{DRIVER}', or leave '{JSON_READER}' out.",
            **properties[JSON_READER].place,
        )
    return reader  # type: ignore[no-any-return]


def target_batch_ms(properties: Properties, mode: Mode) -> int | None:
    """Milliseconds that a batch of this query shall last; None in real-time mode, which has no such batches.

    Raises:
        RequestError: invalid-property or unsupported.
    """
    default = _DEFAULT_TARGET_MS if mode is Mode.MICRO_BATCH else None
    given = _millis(properties, TARGET, mode, least=_LEAST_TARGET)
    return default if given is None else given


def batch_interval_ms(properties: Properties, mode: Mode) -> int:
    """Milliseconds from the start of a batch to that of the next one; 0 for as soon as there are records.

    Raises:
        RequestError: invalid-property or unsupported.
    """
    given = _millis(properties, INTERVAL, mode, least=0)
    once = available_now(properties)
    if given is not None and once:
        raise RequestError(
            "unsupported",
            f"A query that completes runs its batches one after another, without '{INTERVAL}'.",
            **properties[INTERVAL].place,
            hint=f"Leave '{INTERVAL}' or '{TRIGGER}' out.",
        )
    if given is not None:
        return given
    return _DEFAULT_INTERVAL_MS if mode is Mode.MICRO_BATCH and not once else 0


def _millis(properties: Properties, name: str, mode: Mode, *, least: float) -> int | None:
    """A property of micro-batches that is a number of seconds; None where it is left out."""
    given = properties.get(name)
    if given is None:
        return None
    try:
        seconds = float(str(given.value))
    except ValueError:
        seconds = -1.0
    if not least <= seconds <= _MOST_SECONDS:
        raise RequestError(
            "invalid-property",
            f"{name} must be a number of seconds from {least} to {_MOST_SECONDS}.",
            **given.place,
        )
    if mode is not Mode.MICRO_BATCH:
        raise RequestError(
            "unsupported",
            f"'{name}' is about micro-batches, and this query runs in real-time mode.",
            **given.place,
            hint=f"Add '{MODE}' = 'micro_batch', or leave it out.",
        )
    return round(seconds * 1000)


def _word(properties: Properties, name: str) -> str:
    value = properties.get(name)
    if value is None:
        return _WORDS[name][0]
    word = str(value.value).lower()
    if word not in _WORDS[name]:
        raise RequestError("invalid-property", _choice(name), **value.place)
    return word


def _choice(name: str) -> str:
    return f"{name} must be one of {', '.join(_WORDS[name])}."
