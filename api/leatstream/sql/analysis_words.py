"""What to write instead of what the engine refuses, and its long sentences made short."""

from __future__ import annotations

import re

from leatstream.errors import sentence
from leatstream.plan.logical import AnalysisFailure

CONSTANT = "CONSTANT."
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
# (a number or else the type given, a number or else the type wanted) -> the functions that name the unit.
_UNITS = {
    (
        "NUMBER",
        "TIMESTAMP_LTZ",
    ): "TO_TIMESTAMP_LTZ({0}, 3) for milliseconds, TO_TIMESTAMP_LTZ({0}, 0) for seconds",
    ("NUMBER", "TIMESTAMP"): "CAST(TO_TIMESTAMP_LTZ({0}, 3) AS TIMESTAMP) for milliseconds, 0 for seconds",
    (
        "NUMBER",
        "DATE",
    ): "DATE_FROM_UNIX_DATE({0}) for days, CAST(TO_TIMESTAMP_LTZ({0}, 3) AS DATE) for milliseconds",
    ("TIMESTAMP_LTZ", "NUMBER"): "UNIX_MILLIS({0}) for milliseconds, UNIX_SECONDS({0}) for seconds",
    ("TIMESTAMP", "NUMBER"): "UNIX_MILLIS(CAST({0} AS TIMESTAMP_LTZ)) for milliseconds",
    ("DATE", "NUMBER"): "UNIX_DATE({0}) for days",
}
_DATE_PATTERN = re.compile("DATETIME_(WEEK_BASED_)?PATTERN")
_PATTERN = re.compile(
    r"(?:Fail to recognize|Unrecognized datetime pattern:) '?([^\n]*?)'?"
    r"(?: pattern in| in the|\. You| Illegal|$)"
)
_ADVICE = re.compile(
    r"\s*(?:If necessary set \"spark\.[^\"]*\"[^.]*\.?|(?:You can )?set \"spark\.[^\"]*\"[^.]*\.?)",
    re.IGNORECASE,
)
_USE = re.compile(r"\.\s+(Use [`'][a-z_]+[`'] to .*)$")


def shorten(failure: AnalysisFailure, text: str) -> str:
    """The engine's sentence without advice that only its operators can follow."""
    condition = failure.condition.removeprefix(CONSTANT)
    if failure.condition == "IMPLICIT_CAST":
        wanted = failure.parameters.get("wanted", "another type")
        return f"This is VARCHAR where {wanted} is needed, and text is not converted by itself"
    if _DATE_PATTERN.search(condition):
        week = re.search(r"week-based character: (\w)", text)
        if week:
            return f"The date pattern has the week-based letter {week[1]}"
        found = _PATTERN.search(text)
        return f"'{found[1]}' is no date pattern" if found else "This is no date pattern"
    if condition == "BAD_CONSTANT" and " != " in text:
        return f"The format does not fit a value: {text.partition(' != ')[0]}"
    text = _ADVICE.sub("", text)
    return _USE.sub("", text) if failure.condition.startswith(CONSTANT) else text


def hint_of(failure: AnalysisFailure, shown: str) -> str | None:
    """What to write instead; ``shown`` is how the user calls what is at fault."""
    condition = failure.condition.removeprefix(CONSTANT)
    if failure.condition == "IMPLICIT_CAST":
        return _for_text(failure, shown)
    if _DATE_PATTERN.search(condition):
        week = "Y is the year that a week belongs to: write yyyy. " if "Y" in failure.message else ""
        return week + "A pattern looks like yyyy-MM-dd HH:mm:ss; other letters stand in '…'."
    if condition.startswith("INVALID_FORMAT.ESC"):
        return "Write the character of ESCAPE twice where it is meant itself."
    if "DIFF_TYPE" in condition:
        return "Make the types one: CAST(… AS VARCHAR), or another type that has all values."
    for source, target, spark in (("given", "wanted", False), ("srcType", "targetType", True)):
        given, wanted = failure.parameters.get(source), failure.parameters.get(target)
        if given and wanted:
            units = _UNITS.get((_unit_word(given, spark), _unit_word(wanted, spark)))
            return f"Write {units.format(shown)}." if units else None
    found = _USE.search(_ADVICE.sub("", failure.message))
    return sentence(found[1]) if found else None


def _for_text(failure: AnalysisFailure, shown: str) -> str:
    wanted = failure.parameters.get("wanted", "BIGINT")
    if failure.parameters.get("constant") == "true":
        return f"Write it as {wanted}, or make the values beside it text: CAST(… AS VARCHAR)."
    cast = f"CAST({shown} AS {wanted})"
    other = "make the values beside it text: CAST(… AS VARCHAR)."
    return f"Write {cast} (TRY_{cast} gives NULL for other text), or {other}"


def _unit_word(kind: str, spark: bool) -> str:
    kind = kind.strip('"').partition("(")[0]
    if spark:
        kind = {"TIMESTAMP": "TIMESTAMP_LTZ", "TIMESTAMP_NTZ": "TIMESTAMP"}.get(kind, kind)
    return "NUMBER" if kind in _NUMBERS else kind
