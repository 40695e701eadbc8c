"""Faults of records, rows and users' functions: what our own code has marked in the text of Spark's error."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leatstream.plan.job_spec import JobSpec, SourceSpec
from leatstream.plan.record_place import RecordPlace

if TYPE_CHECKING:
    from leatstream_jobs.attempt.failures import Link

_UNDECODABLE_MARK = re.compile(r"LEAT_UNDECODABLE (\S+) (\{.*?\})(?: (\{.*\}))? LEAT_UNDECODABLE_END", re.S)
_UNWRITTEN_MARK = re.compile(r"LEAT_UNENCODABLE (.*?) LEAT_UNENCODABLE_END", re.S)
_JAVA_FUNCTION = re.compile(r"`(leat_fn_\d+) ")
_FUNCTION_MARK = re.compile(r"LEAT_FUNCTION (\{.*?\}) LEAT_FUNCTION_END", re.S)
_PATTERN_MARK = re.compile(r"LEAT_PATTERN (\w+) LEAT_PATTERN_END")
_HIDDEN = ("timestamp_type", "fault", "reason")  # of a position: what does not say where a record is
_NULL_MARK = re.compile(r"LEAT_NULL_COLUMN (.*?) LEAT_NULL_COLUMN_END", re.S)


@dataclass(frozen=True, slots=True)
class FaultPlace:
    """Where an undecodable record was met.

    Attributes:
        view: of its source.
        position: its ``rowmeta()``.
        words: the same as text.
    """

    view: str
    position: Mapping[str, Any]
    words: str


@dataclass(frozen=True, slots=True)
class MarkedFault:
    """A fault for people; no restart mends it."""

    sentence: str
    condition: str
    code: str = "job-failed"
    record: RecordPlace | None = None
    place: FaultPlace | None = None


def find_marked(chain: Sequence[Link], text: str, spec: JobSpec) -> MarkedFault | None:
    """What our own code says of the failure; None where it has marked nothing.

    Args:
        chain: outermost first.
        text: of the whole chain.
        spec: for the names of sources, functions and sink.
    """
    undecodable = _UNDECODABLE_MARK.search(text)
    if undecodable:
        return _undecodable(undecodable, spec)
    function = _FUNCTION_MARK.search(text)
    if function:
        return _of_function(function)
    java = next((i for i, link in enumerate(chain) if link.condition == "FAILED_EXECUTE_UDF"), None)
    if java is not None:
        return _of_java(chain[java], chain[java + 1 :], spec)
    unwritten = _UNWRITTEN_MARK.search(text)
    if unwritten:
        form = spec.sink.value_format.upper()
        sentence = f"A row of {spec.sink.relation} cannot be written as {form}: {unwritten[1]}."
        return MarkedFault(sentence, "UNENCODABLE_ROW")
    pattern = _PATTERN_MARK.search(text)
    if pattern:
        return MarkedFault(_of_pattern(pattern[1]), pattern[1])
    null = _NULL_MARK.search(text)
    if null:
        sentence = f"A row has NULL in column {null[1]}, which {spec.sink.relation} declares NOT NULL."
        return MarkedFault(sentence, "NOT_NULL_VIOLATION")
    return None


def unread(source: SourceSpec, where: str, why: str) -> str:
    """The sentence of a record that cannot be read; ``why`` is one or more faults in words."""
    form = source.value_format.upper()
    return f"The record at {where} is not {form} with the columns of {source.relation}: {why}."


def _undecodable(mark: re.Match[str], spec: JobSpec) -> MarkedFault:
    sentence, record, place = _of_record(mark, spec)
    return MarkedFault(sentence, "UNDECODABLE_RECORD", "undecodable-record", record, place)


def _of_record(mark: re.Match[str], spec: JobSpec) -> tuple[str, RecordPlace | None, FaultPlace | None]:
    source = next((s for s in spec.sources if s.view == mark[1]), spec.sources[0])
    try:
        position = json.loads(mark[2])
    except ValueError:
        position = {}
    table = next((one for one in spec.lookups if one.view == mark[1]), None)
    if table is not None:
        detail = (
            f"A row of table {table.entity} ({table.relation}) has a value that its declared columns cannot "
            "hold, such as infinity or a year before 1. Declare that column VARCHAR, or leave it out."
        )
        return detail, None, None
    if position.get("fault"):
        detail = (
            f"File {position.get('file')} of {source.relation} cannot be read as "
            f"{source.value_format.upper()}: {position['fault']}. Correct or remove it, or skip such files "
            "with 'source.deserialization.error.handling'='IGNORE'."
        )
        return detail, None, None
    record = RecordPlace.of_position(source.entity, position) if source.feed is None else None
    others = ", ".join(f"{k} {v}" for k, v in position.items() if k not in _HIDDEN)
    place = FaultPlace(source.view, position, others if record is None else record.in_words())
    return unread(source, place.words, _reason(mark[3]) or "it does not fit their types"), record, place


def _reason(text: str | None) -> str | None:
    try:
        reason = json.loads(text or "{}").get("reason")
    except ValueError:
        reason = None
    return str(reason) if reason else None


def _of_function(mark: re.Match[str]) -> MarkedFault:
    """What ``user_code`` said of a user's function: the place in the user's file, no message and no value."""
    try:
        report = json.loads(mark[1])
    except ValueError:
        report = {}
    name, error, line = report.get("function"), report.get("error"), report.get("line")
    condition = "FUNCTION_FAILED"
    if error == "time-out":
        condition = "FUNCTION_TIMED_OUT"
        sentence = f"The function {name} took longer than {report.get('text')} in one batch and was stopped."
    elif error == "BadResult":
        sentence = f"The function {name} gave {report.get('text')}."
    else:
        where = f" in line {line} of {report.get('file')}" if line else ""
        sentence = f"The function {name} failed{where}: {error}."
    return MarkedFault(sentence, condition)


def _of_java(link: Link, causes: Sequence[Link], spec: JobSpec) -> MarkedFault:
    """What a function in Java threw: its class and place; never its message, which may quote a record."""
    named = _JAVA_FUNCTION.search(link.message)
    function = next((f for f in spec.functions if named and f.name == named[1]), None)
    name = function.function if function is not None else "in Java"
    cause = causes[0] if causes else None
    place = cause.frames[0] if cause is not None and cause.frames else ""
    if function is not None and place.startswith(("org.apache.spark.", "scala.")):
        sentence = f"The function {name} gave a value that is no {function.returns}."
    else:
        where = f" in {place}" if place else ""
        sentence = f"The function {name} failed{where}: {cause.name if cause else 'no reason was given'}."
    return MarkedFault(sentence, "FUNCTION_FAILED")


def _of_pattern(condition: str) -> str:
    if condition == "TOO_MANY_WAYS":
        return (
            "MATCH_RECOGNIZE has more ways to match the same rows than it can follow. Let DEFINE tell the "
            "variables apart, or shorten WITHIN."
        )
    what = condition.lower().replace("_", " ")
    return (
        f"A condition or measure of MATCH_RECOGNIZE cannot be computed: {what}. A CASE or a cast avoids it."
    )
