"""What Spark's analyzer said, in the user's terms: our code, a clean sentence, a place in the user's text."""

from __future__ import annotations

import re

from leatstream.errors import Fault, Position, RequestError
from leatstream.model.names import PLAIN
from leatstream.model.objects import HIDDEN_PREFIX
from leatstream.plan.logical import AnalysisFailure, LogicalPlan
from leatstream.sql.analysis_words import CONSTANT, hint_of, shorten
from leatstream.sql.source_map import SpanMap

# Error condition (its beginning) -> code; the first that fits counts.
_CODES = (
    ("IMPLICIT_CAST", "type-mismatch"),
    (CONSTANT, "not-computable"),
    ("UNRESOLVED_COLUMN", "unknown-column"),
    ("UNRESOLVED_FIELD", "unknown-column"),
    ("UNRESOLVED_MAP_KEY", "unknown-column"),
    ("FIELD_NOT_FOUND", "unknown-column"),
    ("AMBIGUOUS_", "ambiguous-column"),
    ("UNRESOLVED_ROUTINE", "unknown-function"),
    ("UNSUPPORTED_", "unsupported"),
    ("STREAMING_", "unsupported"),
    ("NOT_SUPPORTED_", "unsupported"),
    ("DATATYPE_", "type-mismatch"),
    ("CAST_", "type-mismatch"),
    ("CANNOT_", "type-mismatch"),
    ("INCOMPARABLE_", "type-mismatch"),
    ("INCOMPATIBLE_", "type-mismatch"),
    ("INVALID_", "type-mismatch"),
    ("NON_FOLDABLE", "type-mismatch"),
    ("NUMERIC_", "type-mismatch"),
    ("NUM_COLUMNS_MISMATCH", "type-mismatch"),
    ("PARSE_", "type-mismatch"),
    ("DECIMAL_", "type-mismatch"),
    ("UNEXPECTED_INPUT", "type-mismatch"),
    ("WRONG_NUM_ARGS", "type-mismatch"),
)
_TYPES = {
    "STRING": "VARCHAR",
    "INT": "INTEGER",
    "BINARY": "BYTES",
    "TIMESTAMP_NTZ": "TIMESTAMP",
    "TIMESTAMP": "TIMESTAMP_LTZ",
}
_TYPE_WORDS = re.compile(r"\b(?:TIMESTAMP_NTZ|TIMESTAMP|STRING|BINARY|INT)\b")
_QUOTED = re.compile(r'"([^"]*)"')
_MISMATCH = re.compile(r'^Cannot resolve ".*?" due to data type mismatch: ', re.DOTALL)
_COLUMN = re.compile(
    r"(?:(?:TRY_)?CAST\()?(?:`t\d+`\.| AS )`((?:[^`]|``)+)`(?: AS [\w(), ]+\))?", re.IGNORECASE
)
_INTERNAL = re.compile(r"`?\bt\d+`?\.(?=`?[^\s.])")


def explain_failure(plan: LogicalPlan, failure: AnalysisFailure) -> RequestError:
    """Make the error for a statement that Spark's analyzer refuses.

    Args:
        plan: what was analyzed.
        failure: condition, message and place in ``plan.sql`` as Spark gave them.

    Returns:
        a RequestError with the position in the user's text and no internal names.
    """
    faults = [_fault(plan, one) for one in (failure, *failure.more)]
    # What is read twice, such as a WITH query, is analyzed twice.
    once = [fault for index, fault in enumerate(faults) if fault not in faults[:index]]
    return RequestError(
        faults[0].code or "unsupported", faults[0].detail, faults=once, sqlstate=faults[0].sqlstate
    )


def _fault(plan: LogicalPlan, failure: AnalysisFailure) -> Fault:
    condition = failure.condition or ""
    code = next((code for start, code in _CODES if condition.startswith(start)), "unsupported")
    state = failure.sqlstate or ""
    sqlstate = RequestError.kinds[code].sqlstate
    if code == "not-computable":
        sqlstate = state if state.startswith("22") else "22023"
    shown = _shown(failure.fragment or "")
    return Fault(
        _sentence(plan, failure), code, None, _position(plan, failure), hint_of(failure, shown), sqlstate
    )


def _position(plan: LogicalPlan, failure: AnalysisFailure) -> Position | None:
    if failure.start is None or failure.stop is None:
        return None
    position, source_map = None, plan.source_map
    if failure.condition.endswith("FILTER_NOT_BOOLEAN") and isinstance(source_map, SpanMap):
        position = source_map.locate_filter(failure.start, failure.stop)
    return position or source_map.locate(failure.start, failure.stop, failure.fragment or "")


def _shown(fragment: str) -> str:
    """How the user calls a column; what is longer is pointed at."""
    found = _COLUMN.fullmatch(fragment)
    return found[1].replace("``", "`") if found and PLAIN.match(found[1]) else "…"


def _sentence(plan: LogicalPlan, failure: AnalysisFailure) -> str:
    text = failure.message.strip()
    text = re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*", "", text)
    # Behind the state come the place, the query plan or a stack trace: nothing for users.
    text = re.split(r"\s*SQLSTATE:|\n|; line \d+ pos \d+|== SQL", text)[0]
    text = re.sub(r"\s*Please, refer to '[^']*' for a fix\.?", "", text)
    text = shorten(failure, _MISMATCH.sub("", text))
    for scan in plan.scans:
        text = scan.alias.join(re.split(rf"`?\b{scan.view}\b`?", text))
    text = _INTERNAL.sub("", text)
    text = _QUOTED.sub(lambda m: f'"{_types(m.group(1))}"', text)
    text = text.strip().rstrip(".;")
    if not text or HIDDEN_PREFIX in text or "leat_src_" in text:
        text = f"The engine cannot run this ({failure.condition or 'no reason given'})"
    return text[:1].upper() + text[1:] + "."


def _types(text: str) -> str:
    """Spark's type names to ours, in a quoted piece of a message that is a type."""
    if not re.fullmatch(r"[A-Z_]+(?:\([\d, ]+\))?|(?:ARRAY|MAP|STRUCT)<.*>", text):
        return text
    return _TYPE_WORDS.sub(lambda m: _TYPES[m.group()], text)
