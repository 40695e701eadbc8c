"""Finds in an analyzed plan what Spark's analyzer lets pass and what fails, or is wrong, at run time.

Three kinds: a text that Spark would convert to another type by itself, a conversion between numbers and
times, whose unit is seconds, and a constant that cannot be computed with: a date that does not exist, a bad
regular expression, a zero to divide by. Constants are found by computing: an expression over constants alone
as it stands, one over other values too with sample values in their place.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from leatstream.model.types import DataType, from_spark
from leatstream_jobs.runtime.plan_trees import companion, items, name_of, range_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
_Range = tuple[int, int]
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")

# More faults, or more constants, than anybody writes: a statement must not keep the analyzer to itself.
MAX_FAULTS = 20
MAX_COMPUTED = 500
_MOST_TEXT = 4096

# These cannot fail, or fail in their parts only.
_SAFE = frozenset(
    """
    Alias And AttributeReference CaseWhen Coalesce CommonExpressionDef CommonExpressionRef Concat
    ConcatWs CreateArray CreateNamedStruct EqualNullSafe EqualTo GetStructField GreaterThan
    GreaterThanOrEqual If In IsNaN IsNotNull IsNull LessThan LessThanOrEqual Literal Lower Not Or
    SortOrder Upper With
    """.split()  # noqa: SIM905
)
# With a sample of 0 they never fail.
_SAFE_WITH_SAMPLES = frozenset(("Add", "Subtract", "Multiply", "UnaryMinus", "Cast"))
# A small constant makes a large value of another, or much work: never computed here.
_NEVER = frozenset(
    """
    ArrayRepeat AssertTrue HigherOrderFunction PythonUDF RaiseError ScalaUDF Sequence StringLPad
    StringRPad StringRepeat StringReplace StringSpace
    """.split()  # noqa: SIM905
)
_WIDE = ("FormatNumber", "FormatString", "Invoke", "StaticInvoke")  # computed unless a width may be large
# Matching a text can take for ever: only the pattern is tried, against a sample.
_MATCHING = frozenset(
    """
    ILike Like RLike RegExpCount RegExpExtract RegExpExtractAll RegExpInStr RegExpReplace StringSplit
    StringToMap
    """.split()  # noqa: SIM905
)
# Their third argument is a group of the second. Only a text that matches would show that there is none.
_OF_GROUPS = frozenset(("RegExpExtract", "RegExpExtractAll"))
# These give NULL for a constant that they do not know, whatever the value.
_NULL_IS_WRONG = frozenset(("Conv", "Sha2", "TruncDate", "TruncTimestamp"))
# What a sample may fail with that says nothing of the constants beside it.
_OF_VALUES = (
    "CANNOT_PARSE_",
    "CAST_INVALID_INPUT",
    "CANNOT_DECODE_URL",
    "INVALID_URL",
    "MALFORMED_RECORD",
    "INVALID_FORMAT.MISMATCH_INPUT",
    "INVALID_PARAMETER_VALUE.AES_CRYPTO_ERROR",
    "INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX",
)
_NO_FAULTS = ("INTERNAL_ERROR", "UNSUPPORTED_", "NOT_IMPLEMENTED", "_LEGACY_ERROR_TEMP")
_TEXTS = ("", "1", "2000-01-01 00:00:00")


def plan_faults(spark: SparkSession, plan: Any, sql: str) -> list[dict[str, Any]]:
    """Faults of an analyzed plan, as ``leatstream.plan.logical.AnalysisFailure``, in the order of the text.

    Args:
        spark: the session that analyzed it.
        plan: the JVM's logical plan.
        sql: what it was made of.
    """
    jvm: Any = spark._jvm
    texts = list(_converted_texts(jvm, plan, sql))
    ready = plan
    for rule in ("ReplaceExpressions", "ComputeCurrentTime"):
        ready = companion(jvm, f"{_OPTIMIZER}.{rule}").apply(ready)
    found = texts + list(_converted_times(jvm, ready))
    places = {(fault["start"], fault["stop"]) for fault in found} | {t["cast"] for t in texts}
    for fault in _Constants(spark, sql).faults(ready):
        if (fault["start"], fault["stop"]) not in places:
            places.add((fault["start"], fault["stop"]))
            found.append(fault)
    for fault in found:
        fault.pop("cast", None)
        if fault["fragment"] is None and fault["start"] is not None:
            fault["fragment"] = sql[fault["start"] : fault["stop"] + 1]
    return sorted(found, key=lambda f: -1 if f["start"] is None else f["start"])[:MAX_FAULTS]


def _patterns(jvm: Any, *names: str) -> Any:
    """Spark keeps with each node which of these its tree has, so most of a plan need not be walked."""
    kinds = companion(jvm, "org.apache.spark.sql.catalyst.trees.TreePattern")
    return jvm.PythonUtils.toSeq([getattr(kinds, name)() for name in names])


def _expressions(plan: Any, patterns: Any) -> Iterator[tuple[Any, Any, _Range | None]]:
    """Every expression of a plan that has one of these patterns, with its plan and where that stands."""
    waiting: list[tuple[Any, Any]] = [(plan, None)]
    while waiting:
        node, parent = waiting.pop()
        if not node.containsAnyPattern(patterns):
            continue
        place = range_of(node)
        children = items(node.children())
        if parent == "Union" and children:
            # Columns of a branch that were widened stand for the branch.
            place = range_of(children[0]) or place
        for expression in items(node.expressions()):
            if expression.containsAnyPattern(patterns):
                yield node, expression, place
        waiting += [(child, name_of(node)) for child in reversed(children)]


def nodes_of(spark: SparkSession, plan: Any, pattern: str) -> Iterator[Any]:
    """Every expression of a plan that has one of Spark's tree patterns, and those around such ones."""
    patterns = _patterns(spark._jvm, pattern)
    for _, expression, _ in _expressions(plan, patterns):
        waiting = [expression]
        while waiting:
            node = waiting.pop()
            if node.containsAnyPattern(patterns):
                yield node
                waiting += items(node.children())


def _casts(jvm: Any, plan: Any) -> Iterator[tuple[Any, dict[str, Any], _Range | None]]:
    """Every cast, what the names of common expressions stand for, and where the plan's node stands."""
    patterns = _patterns(jvm, "CAST")
    for _, expression, place in _expressions(plan, patterns):
        named: dict[str, Any] = {}
        waiting = [expression]
        while waiting:
            node = waiting.pop()
            if not node.containsAnyPattern(patterns):
                continue
            kind = name_of(node)
            if kind == "With":
                named |= {d.id().toString(): d.child() for d in items(node.defs())}
            if kind == "Cast":
                yield node, named, place
            waiting += reversed(items(node.children()))


def _converted_texts(jvm: Any, plan: Any, sql: str) -> Iterator[dict[str, Any]]:
    """Texts that Spark converts though nobody wrote CAST; a constant that is a date or time may stand."""
    written = companion(jvm, f"{_EXPRESSIONS}.Cast").USER_SPECIFIED_CAST()
    for cast, named, place in _casts(jvm, plan):
        wanted = next(
            (w for g, w in _changes(cast) if g == "VARCHAR" and w not in ("VARCHAR", "BYTES")), None
        )
        if wanted is None or cast.getTagValue(written).isDefined():
            continue
        value = cast.child()
        if name_of(value) == "CommonExpressionRef":
            value = named.get(value.id().toString(), value)
        if value.foldable() and wanted not in (*_NUMBERS, "BOOLEAN"):
            continue
        whole = range_of(cast)
        outer = (
            place
            if place is not None and (whole is None or whole[1] - whole[0] > place[1] - place[0])
            else whole
        )
        start, stop = _place_of(value, outer, sql)
        yield _fault(
            "IMPLICIT_CAST",
            f"A VARCHAR stands where {wanted} is needed.",
            "42804",
            (start, stop),
            {"wanted": wanted, "constant": str(bool(value.foldable())).lower()},
        ) | {"cast": whole}


def _place_of(value: Any, outer: _Range | None, sql: str) -> tuple[int | None, int | None]:
    """Where a value stands within the expression that takes it; columns do not know theirs."""
    if outer is None:
        return None, None
    if name_of(value) != "AttributeReference":
        own = range_of(value)
        return own if own is not None and outer[0] <= own[0] and own[1] <= outer[1] else outer
    name = _quoted(value.name())
    qualifier = items(value.qualifier())
    text = f"{_quoted(qualifier[-1])}.{name}" if qualifier else f" AS {name}"
    at = sql.find(text, outer[0], outer[1] + 1)
    if at < 0:
        # IN and BETWEEN know only what stands behind their first operand.
        at = sql.rfind(text, 0, outer[0])
        if sql[at + len(text) : outer[0]].strip(" )") not in ("", "NOT"):
            return outer
    return outer if at < 0 else (at, at + len(text) - 1)


def _quoted(name: str) -> str:
    return "`" + str(name).replace("`", "``") + "`"


def _converted_times(jvm: Any, plan: Any) -> Iterator[dict[str, Any]]:
    """Casts between numbers and times: Spark counts seconds, event time is in milliseconds."""
    for cast, _, place in _casts(jvm, plan):
        for given, wanted in _changes(cast):
            if (given in _NUMBERS and wanted in _TIMES) or (given in _TIMES and wanted in _NUMBERS):
                yield _fault(
                    "CAST_OF_TIME",
                    f"{given} cannot be cast to {wanted}: the unit would be left open.",
                    "42846",
                    range_of(cast) or place or (None, None),
                    {"given": given, "wanted": wanted},
                )
                break


def _changes(cast: Any) -> list[tuple[str, str]]:
    """Kinds that a cast turns into others, in our words; those inside ARRAY, MAP and STRUCT too."""
    given, wanted = (cast.child().dataType().catalogString(), cast.dataType().catalogString())
    try:
        return list(_pairs(from_spark(given), from_spark(wanted)))
    except ValueError:
        # An interval, or NULL.
        return [("VARCHAR", wanted.upper())] if given == "string" else []


def _pairs(given: DataType, wanted: DataType) -> Iterator[tuple[str, str]]:
    if given.arguments and len(given.arguments) == len(wanted.arguments):
        for one, other in zip(given.arguments, wanted.arguments, strict=True):
            yield from _pairs(one, other)
    elif given.kind != wanted.kind:
        yield given.kind, wanted.kind


def _fault(
    condition: str,
    message: str,
    sqlstate: str | None,
    place: tuple[int | None, int | None],
    parameters: dict[str, str],
) -> dict[str, Any]:
    return {
        "condition": condition,
        "message": message,
        "sqlstate": sqlstate,
        "start": place[0],
        "stop": place[1],
        "fragment": None,
        "parameters": parameters,
    }


class _Constants:
    """Computes the expressions of one plan that have constants in them."""

    def __init__(self, spark: SparkSession, sql: str) -> None:
        self._sql = sql
        self._place: _Range | None = None
        self._item: Any = None
        self._jvm: Any = spark._jvm
        self._parser = spark._jsparkSession.sessionState().sqlParser()
        self._patterns = _patterns(self._jvm, "LITERAL")
        self._literals = companion(self._jvm, f"{_EXPRESSIONS}.Literal")
        self._samples: dict[str, list[Any]] = {}
        self._left = MAX_COMPUTED
        self._found: list[dict[str, Any]] = []

    def faults(self, plan: Any) -> list[dict[str, Any]]:
        """What cannot be computed."""
        for _, expression, place in _expressions(plan, self._patterns):
            self._place, self._item = place, expression
            try:
                self._look(expression)
            except (
                Exception
            ) as error:  # too deep, or of a form that is not known: not checked, so not refused
                _LOG.warning("constants of an expression were not checked: %s", type(error).__name__)
        return self._found

    def _look(self, node: Any) -> bool:
        """Look at a node after its parts, and say whether it may be computed as a part of others."""
        if not node.containsAnyPattern(self._patterns):
            return False
        kind = name_of(node)
        if kind == "Literal":
            return bool(node.dataType().catalogString() != "string" or len(str(node.value())) <= _MOST_TEXT)
        if kind == "TryEval":
            return False
        before = len(self._found)
        parts = items(node.children())
        usable = self._look_at_parts(kind, parts)
        if len(self._found) > before or kind in _NEVER or not node.deterministic():
            return False
        fixed = bool(parts) and all(usable) and node.foldable()
        if kind in _WIDE and not all(_is_narrow(part) for part in parts if name_of(part) == "Literal"):
            return False
        if kind not in _SAFE and any(usable) and self._left > 0:
            self._left -= 1
            if fixed and kind not in _MATCHING:
                self._try(node, [node], sampled=False)
            elif kind not in _SAFE_WITH_SAMPLES:
                constant = [use and not (kind in _MATCHING and i == 0) for i, use in enumerate(usable)]
                self._try(node, list(self._with_samples(node, parts, constant)), sampled=True)
            if kind in _OF_GROUPS and all(usable[1:]) and len(self._found) == before:
                self._check_group(node, parts[1].eval(None), parts[2].eval(None))
        return fixed and kind not in _MATCHING and len(self._found) == before

    def _check_group(self, node: Any, pattern: Any, group: int | None) -> None:
        if pattern is None or group is None:
            return
        compiled = getattr(self._jvm, "java.util.regex.Pattern").compile(str(pattern))
        count = compiled.matcher("").groupCount()
        if 0 <= group <= count:
            return
        there = f"has {count} group{'s' * (count != 1)}" if count else "has no groups"
        text = f"The pattern {there}: there is no group {group}."
        self._found.append(
            _fault("CONSTANT.REGEX_GROUP_INDEX", text, "22023", self._range(node) or (None, None), {})
        )

    def _look_at_parts(self, kind: str, parts: Sequence[Any]) -> list[bool]:
        """Which parts may be computed; a branch whose constant condition does not hold is left out."""
        if kind not in ("CaseWhen", "If"):
            return [self._look(part) for part in parts]
        usable = [False] * len(parts)
        for at in range(0, len(parts) - 1, 2):
            usable[at] = self._look(parts[at])
            holds = _holds(parts[at]) if usable[at] else None
            if holds is not False:
                usable[at + 1] = self._look(parts[at + 1])
            if holds:
                return usable
        if len(parts) % 2:
            usable[-1] = self._look(parts[-1])
        return usable

    def _with_samples(self, node: Any, parts: Sequence[Any], constant: Sequence[bool]) -> Iterator[Any]:
        """The node with samples for what is not constant, in several ways."""
        kinds = [part.dataType() for part in parts]
        loose = [k for k, fixed in zip(kinds, constant, strict=True) if not fixed]
        for turn in range(max((len(self._samples_of(k)) for k in loose), default=1)):
            chosen = []
            for part, kind, fixed in zip(parts, kinds, constant, strict=True):
                samples = [part] if fixed else self._samples_of(kind)
                chosen.append(samples[min(turn, len(samples) - 1)])
            try:
                yield node.withNewChildren(self._jvm.PythonUtils.toSeq(chosen))
            except Exception:  # a node whose parts must be of one class
                return

    def _samples_of(self, kind: Any) -> list[Any]:
        name = str(kind.catalogString())
        if name not in self._samples:
            try:
                first = self._literals.default(kind)
            except Exception:  # of no type that values are of
                first = self._parser.parseExpression("NULL")
            more: list[str] = []
            if name in ("tinyint", "smallint", "int", "bigint", "float", "double"):
                more = [f"CAST({value} AS {name})" for value in (1, -1)]
            elif name == "string":
                more = [f"'{text}'" for text in _TEXTS[1:]]
            self._samples[name] = [first, *(self._parser.parseExpression(text) for text in more)]
        return self._samples[name]

    def _range(self, node: Any) -> _Range | None:
        """Where a node stands; what Spark makes has the whole SELECT's place, so take the item's."""
        own = range_of(node)
        if own is not None and own != self._place:
            return own
        text = f" AS {_quoted(self._item.name())}" if name_of(self._item) == "Alias" else ""
        start, stop = self._place or (0, -1)
        at = self._sql.find(text, start, stop + 1) if text else -1
        return self._place if at < 0 else (at, at + len(text) - 1)

    def _try(self, node: Any, forms: Sequence[Any], *, sampled: bool) -> None:
        """Note a fault if every form fails, and of the constants."""
        first = None
        for form in forms:
            fault = _compute(form, sampled=sampled)
            if fault is None:
                return
            first = first or fault
        if first is not None:
            if first["start"] is None:
                first["start"], first["stop"] = self._range(node) or (None, None)
            first["condition"] = f"CONSTANT.{first['condition']}"
            self._found.append(first)


def _holds(condition: Any) -> bool | None:
    """Whether a constant condition holds; None if it cannot be computed."""
    try:
        return condition.eval(None) is True
    except Exception:
        return None


def _compute(form: Any, *, sampled: bool) -> dict[str, Any] | None:
    """How computing it fails; None where it does not, or for another reason than its constants."""
    from pyspark.errors import ArithmeticException, IllegalArgumentException, PySparkException

    from leatstream_jobs.analysis.analyze import failure_of

    try:
        value = form.eval(None)
    except PySparkException as error:
        condition = error.getCondition()
        if condition is None:
            # Java's own, of a pattern or a number.
            known = isinstance(error, (ArithmeticException, IllegalArgumentException))
            text = str(error).strip().partition("\n")[0]
            return _fault("BAD_CONSTANT", text, "22023", (None, None), {}) if known else None
        ignored = (*_NO_FAULTS, *(_OF_VALUES if sampled else ()))
        return None if condition.startswith(ignored) else failure_of(error)
    except Exception:  # a node that cannot be computed outside of a running query
        return None
    if value is None and name_of(form) in _NULL_IS_WRONG:
        text = "The function gives NULL for every value: it knows no such constant."
        return _fault("ALWAYS_NULL", text, "22023", (None, None), {})
    return None


def _is_narrow(literal: Any) -> bool:
    """Whether no width in a format is so large that the text would be."""
    return not re.search(r"[0-9]{4}", str(literal.value()))
