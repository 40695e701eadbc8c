"""From what Spark and the Kafka client throw to what a person reads: a JobError's code and a plain sentence.

No stack trace, no plan dump, no record content, no secret ever passes through here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from leatstream.connectors.store_marks import find_mark
from leatstream.errors import (
    STATE_UNREADABLE,
    AttemptBehindError,
    JobError,
    LeatstreamError,
    SecretStoreError,
    StoreError,
)
from leatstream.formats.excerpts import described, is_private
from leatstream.model.types import from_spark
from leatstream.plan.job_spec import JobSpec, SinkSpec, SourceSpec
from leatstream.plan.record_place import RecordPlace
from leatstream_jobs.attempt import failure_words as words
from leatstream_jobs.attempt.marked_faults import FaultPlace, find_marked

_CODE = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
_SECRET = re.compile(
    r"(?i)((?:password|secret|token|access[._]?key|jaas[.\w]*|truststore[.\w]*)[\"']?\s*[=:]\s*)"
    r"(\"[^\"]*\"|'[^']*'|\S+)"
)
_USER = re.compile(r"(\w://[^\s/:@]*:)[^\s/@]+(?=@)")
_ABORTED = re.compile(r"Job aborted due to stage failure:.*?most recent failure: [^:]*:\s*", re.S)
_CLASS = re.compile(r"^(?:[a-z_]\w*\.)+[A-Z]\w*(?:\$\w+)?:\s*")
_NOISE = re.compile(r"\n\s*at .*|\nDriver stacktrace:.*|\n===? .*|\nCaused by: .*|SQLSTATE: \w{5}", re.S)
_VALUE_QUOTED = re.compile(
    r"The value '(?P<value>.*?)' of the type \"STRING\" cannot be cast to \"(?P<type>[^\"]+)\"", re.S
)
_IDENTIFIER = re.compile(r"\w+")
_LIMIT = 600
_DEEP = 40  # frames of one exception


@dataclass(frozen=True, slots=True)
class Link:
    """One exception of a chain, outermost first.

    Attributes:
        frames: the innermost places of its stack.
        context: the SQL that it is about: first and last character, and the text between.
    """

    name: str
    message: str
    condition: str | None = None
    frames: tuple[str, ...] = ()
    context: tuple[int, int, str] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a query failed, as a heartbeat reports it.

    Attributes:
        newest_attempt: a later one than this, that the sink knows of.
        record: the one that it failed at, where that is known.
        columns: of that record, those that are to blame.
        shown: the detail with excerpts of values, for who looks at the query: no log and no message has them.
        place: of an undecodable record, whether it has a place that lasts or not.
        span: of the job's SQL, first and last character of what could not be computed.
    """

    code: str
    detail: str
    condition: str | None = None
    retryable: bool | None = None
    newest_attempt: int | None = None
    record: RecordPlace | None = None
    columns: tuple[str, ...] = ()
    shown: str | None = None
    span: tuple[int, int] | None = None
    place: FaultPlace | None = None

    def as_json(self) -> dict[str, Any]:
        """``{code, detail, retryable, condition?, newest_attempt?, shown?, record?, columns?, span?}``."""
        known = JobError.kinds[self.code].retryable
        body: dict[str, Any] = {
            "code": self.code,
            "detail": redacted(self.detail),
            "retryable": known if self.retryable is None else self.retryable,
        }
        if self.newest_attempt is not None:
            body["newest_attempt"] = self.newest_attempt
        if self.record is not None:
            body["record"] = self.record.as_json()
        if self.shown is not None:
            body["shown"] = redacted(self.shown)
        if self.span is not None:
            body["span"] = list(self.span)
        if self.columns:
            body["columns"] = list(self.columns)
        return body | ({"condition": self.condition} if self.condition else {})


def chain_of(error: Any) -> list[Link]:
    """The chain behind a Python exception that Py4J made, or behind a Java exception itself."""
    # A Java object answers to any attribute name, so only its Python class distinguishes it.
    python = isinstance(error, BaseException)
    java = (getattr(error, "java_exception", None) or getattr(error, "_origin", None)) if python else error
    if java is None:
        return [Link(type(error).__name__, str(error))]
    links: list[Link] = []
    while java is not None and len(links) < 12:
        name = java.getClass().getName()
        of_spark = _is_spark_throwable(java)
        condition, context = (java.getCondition(), _context(java)) if of_spark else (None, None)
        links.append(Link(name, str(java.getMessage() or ""), condition, _frames(java), context))
        java = java.getCause()
    return links


def spark_has_stopped(chain: Sequence[Link]) -> bool:
    """Whether the JVM is on its way out, or has no Spark left."""
    return any(word in link.message for link in chain for word in words.STOPPED)


def classify(chain: Sequence[Link], spec: JobSpec) -> Failure:
    """Decide the code and write the sentence.

    Args:
        chain: outermost first.
        spec: for the names of sources and sink.
    """
    text = "\n".join(f"{link.name}: {link.message}" for link in chain)
    condition = _condition(chain, text)
    marked = find_marked(chain, text, spec)
    if marked is not None:
        # The same record or row fails again after every restart.
        return Failure(
            marked.code,
            marked.sentence,
            marked.condition,
            retryable=False,
            record=marked.record,
            place=marked.place,
        )
    store = find_mark(text)
    if store is not None:
        return _of_store(*store)
    said = _innermost(chain)
    if urlsplit(spec.checkpoint).scheme not in ("", "file") and any(word in text for word in words.FAR):
        detail = f"The file system of the checkpoint {spec.checkpoint} does not answer: {said}"
        return Failure("job-failed", detail, "checkpoints-unreachable", retryable=True)
    if any(word in text for word in words.FULL):
        where = "the driver's files or the checkpoint " + spec.checkpoint
        return Failure("disk-full", f"There is no room left on the disk of {where}.", condition)
    if any(word in text for word in words.GONE) and not _names(words.STATE_GONE, condition, text):
        topics = " and ".join(sorted({f"{s.entity} ({s.relation})" for s in spec.sources}))
        if any(word in text for word in words.NO_TOPIC):
            condition = "SOURCE_ENTITY_GONE"
        return Failure("source-gone", f"A source's records are gone: {topics}. Spark says: {said}", condition)
    if "RecordTooLargeException" in text or "MSG_SIZE_TOO_LARGE" in text:
        whom = f"A record for {spec.sink.relation} is larger than"
        if any(word in text for word in words.TOO_LARGE_TO_SEND):
            detail = f"{whom} the 32 MiB that are sent at most. Let the query give smaller ones."
        else:
            detail = (
                f"{whom} topic {spec.sink.entity} takes. Raise the topic's max.message.bytes and restart the "
                "query: the record is read again."
            )
        return Failure("job-failed", detail, "RECORD_TOO_LARGE", retryable=False)
    if any(word in text for word in words.AUTH):
        detail = f"A store refused the job's login or access: {said}"
        return Failure("job-failed", detail, condition or "store-auth-failed", retryable=False)
    if "LoginException" in text:
        # The Java client could not even prepare a login: its token endpoint is unreachable, or refuses.
        return Failure(
            "job-failed", f"A store gave no token to log in with: {said}", condition, retryable=True
        )
    if words.LOST_ROWS in text or condition == words.LOST_ROWS:
        # No word of the query's checkpoint: it is what one batch kept in the executors' memory.
        detail = (
            "An executor has gone, and with it rows of the batch; the query continues from its checkpoint."
        )
        return Failure("job-failed", detail, condition, retryable=True)
    if any(word in text for word in words.UNREACHABLE) and words.NOT_IN_METADATA not in text:
        # That one may as well be a topic that somebody has deleted.
        detail = f"A server that the job needs does not answer: {said}"
        return Failure("job-failed", detail, "store-unreachable", retryable=True)
    if any(word in text or word in (condition or "") for word in words.PASSING):
        return Failure("job-failed", f"The job ended with an error: {said}", condition, retryable=True)
    if _is_checkpoint(condition, text) or any(_unreadable(link) for link in chain):
        detail = f"The checkpoint {spec.checkpoint} does not fit this query or is damaged: {said}"
        return Failure("checkpoint-damaged", detail, condition)
    if _names(words.STATE, condition, text):
        # A restart shows it: after the last one the state, if no better, counts as damaged.
        detail = f"State in the checkpoint {spec.checkpoint} could not be loaded: {said}"
        return Failure("job-failed", detail, STATE_UNREADABLE, retryable=True)
    if any(word in (condition or "") for word in words.VALUE):
        return of_value(chain, condition or "", spec)
    if any(word in text or word in (condition or "") for word in words.REJECTED):
        return Failure("job-rejected", f"Spark refused the query: {said}", condition)
    return Failure("job-failed", f"The job ended with an error: {said}", condition)


def of_value(chain: Sequence[Link], condition: str, spec: JobSpec) -> Failure:
    """A value that could not be computed; Spark's own sentence quotes it, and it may be anybody's data."""
    said = next((word for name, word in words.VALUE.items() if name in condition), condition)
    cure = "TRY_CAST or CASE keeps such a record out"
    link = next((link for link in reversed(chain) if link.context is not None), None)
    fragment = link.context[2] if link is not None and link.context is not None else ""
    value = _VALUE_QUOTED.search(link.message) if link is not None else None
    shown = None
    if value is not None and not any(map(is_private, _IDENTIFIER.findall(fragment))):
        value_text = described(value["value"], "", shown=spec.excerpts)
        shown = f"{value_text} is no {_product_type(value['type'])} ({condition}); {cure}."
    span = None
    if link is not None and link.context is not None:
        start, stop, text = link.context
        span = (start, stop) if spec.sql[start : stop + 1] == text else None
    detail = f"{said} ({condition}); {cure}."
    return Failure("job-failed", detail, condition, retryable=False, shown=shown, span=span)


def _product_type(spark: str) -> str:
    try:
        return str(from_spark(spark.lower()))
    except ValueError:
        return spark


def _of_store(role: str, code: str, sentence: str) -> Failure:
    """What a connector's Python worker has said."""
    if code == "entity-not-found" and role == "source":
        return Failure("source-gone", sentence, code)
    return Failure("job-failed", sentence, code, retryable=StoreError.kinds[code].retryable)


def redacted(text: str) -> str:
    """The text with what looks like a secret taken out, cut to a readable length."""
    text = " ".join(_USER.sub(r"\1***", _SECRET.sub(r"\1***", text)).split())
    return text if len(text) <= _LIMIT else text[: _LIMIT - 1] + "…"


def source_gone(source: SourceSpec, recreated: bool) -> Failure:
    """The driver itself has noticed that a source's entity is not the one it started with."""
    what = "was deleted and created again" if recreated else "does not exist any more"
    return Failure(
        "source-gone",
        f"Entity {source.entity} of {source.relation} in store {source.store.name} {what}.",
        "SOURCE_ENTITY_RECREATED" if recreated else "SOURCE_ENTITY_GONE",
    )


def sink_gone(sink: SinkSpec) -> Failure:
    """Somebody has deleted what the query writes to; an empty one in its place is not for a job to make."""
    where = f"{sink.relation} in store {sink.store.name}"
    detail = f"The sink's entity {sink.entity} of {where} does not exist any more."
    return Failure("job-failed", detail, "SINK_ENTITY_GONE", retryable=False)


def refused(error: LeatstreamError) -> Failure:
    """What our own code has said before or instead of Spark."""
    if isinstance(error, JobError):
        return Failure(error.code, error.detail, error.extra.get("condition"))
    if isinstance(error, AttemptBehindError):
        return Failure("job-failed", error.detail, "attempt-behind", True, newest_attempt=error.newest)
    if isinstance(error, SecretStoreError):
        return Failure("job-failed", error.detail, error.code, error.retryable)
    if isinstance(error, StoreError):
        gone = error.code == "entity-not-found"
        code = "source-gone" if gone else "job-failed"
        return Failure(code, error.detail, error.code, None if gone else error.retryable)
    return Failure("job-rejected", error.detail, error.code)


def _condition(chain: Sequence[Link], text: str) -> str | None:
    named = [link.condition for link in chain if link.condition and link.condition != "STREAM_FAILED"]
    if named:
        return named[-1]
    found = [code for code in _CODE.findall(text) if code != "STREAM_FAILED"]
    return found[-1] if found else None


def _is_checkpoint(condition: str | None, text: str) -> bool:
    return _names(words.CHECKPOINT, condition, text) or any(word in text for word in words.CHECKPOINT_TEXT)


def _names(conditions: tuple[str, ...], condition: str | None, text: str) -> bool:
    """Whether one of Spark's conditions that begin so is there, as such or in the report of a task."""
    return (condition or "").startswith(conditions) or any(f"[{word}" in text for word in conditions)


def _unreadable(link: Link) -> bool:
    """Whether a file of the checkpoint holds what Spark cannot understand; it has no words of its own for it.

    A file system that does not answer fails in the same places, but in other ways.
    """
    reading = any(place in frame for frame in link.frames for place in words.READING)
    return reading and link.name.endswith(words.NONSENSE)


def _frames(java: Any) -> tuple[str, ...]:
    trace = java.getStackTrace()
    return tuple(f"{f.getClassName()}.{f.getMethodName()}" for f in trace[: min(len(trace), _DEEP)])


def _context(java: Any) -> tuple[int, int, str] | None:
    found = [
        c for c in (java.getQueryContext() or []) if str(c.contextType()) == "SQL" and c.startIndex() >= 0
    ]
    return (found[0].startIndex(), found[0].stopIndex(), str(found[0].fragment())) if found else None


def _innermost(chain: Sequence[Link]) -> str:
    """The deepest cause that says something, freed of class names, codes and stack frames."""
    for link in reversed(chain):
        text = _ABORTED.sub("", link.message)
        text = _CODE.sub("", _NOISE.sub("", text)).strip()
        while _CLASS.match(text):
            text = _CLASS.sub("", text, count=1)
        text = " ".join(text.split())
        if text:
            return redacted(text)
    return chain[-1].name.rsplit(".", 1)[-1] if chain else "no cause was given"


def _is_spark_throwable(java: Any) -> bool:
    return any(c.getName() == "org.apache.spark.SparkThrowable" for c in _interfaces(java.getClass()))


def _interfaces(cls: Any) -> list[Any]:
    found: list[Any] = []
    while cls is not None:
        found.extend(cls.getInterfaces())
        cls = cls.getSuperclass()
    return found
