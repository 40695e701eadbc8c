"""How calls are written for Spark: by the function table's rule, or by one of the rules here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from leatstream.errors import InternalError
from leatstream.model.objects import ROWMETA, ROWTIME
from leatstream.model.types import DataType
from leatstream.plan.logical import Quotient
from leatstream.sql.function_table import functions
from leatstream.sql.json_paths import sql_of
from leatstream.sql.passes.group_calls import write_group_call
from leatstream.sql.passes.quotients import TRY_DIVIDE, is_open, origin_of, whole_type
from leatstream.sql.passes.quoting import name
from leatstream.sql.passes.user_functions import use_of, write_user_call

if TYPE_CHECKING:
    from leatstream.sql.passes.render_expressions import ExpressionRenderer


_PLACE = ("topic", "partition", "offset", "timestamp_type")


def _hidden(value: str, column: str, *, whole: bool) -> str:
    """A record's time, key, place or headers; the place without what single kinds of store add to it."""
    if column == ROWMETA and whole:
        return "named_struct(" + ", ".join(f"'{part}', {value}.`{part}`" for part in _PLACE) + ")"
    return f"unix_millis({value})" if column == ROWTIME else value


def write_call(r: ExpressionRenderer, node: Any) -> None:
    """Write a function call."""
    word, arguments = str(node.this), node.expressions
    if "bound" in node.meta:
        ref, column, _ = node.meta["bound"]
        value = f"{name(ref)}.{name(column)}"
        r.put(_hidden(value, column, whole=not isinstance(node.parent, exp.Dot)))
        return
    use = use_of(node)
    if use is not None:
        write_user_call(r, node, use)
        return
    if write_group_call(r, node):
        return
    function = functions().get(word)
    if function is None:
        raise InternalError("internal", f"The function {word} has no Spark form.")
    if function.name == TRY_DIVIDE and (is_open(node) or whole_type(node)):
        _write_try_divide(r, node)
        return
    rule = _RULES.get(function.name)
    if rule is not None and rule(r, arguments):
        return
    spark = function.spark(len(arguments))
    if "{" in spark or "(" in spark:
        r.form(spark, arguments, node.meta.get("row_time", "CAST(NULL AS TIMESTAMP)"))
    else:
        r.call(spark, arguments)


def _write_try_divide(r: ExpressionRenderer, node: Any) -> None:
    """A quotient of whole numbers, or one that is still open; Spark's own function gives a DOUBLE."""
    kind = whole_type(node)
    r.put("CAST(" if kind else "(")
    start = r.length
    r.template("({})", node.expressions[0])
    at = r.length + 1
    r.template(f" {'DIV' if kind else '/'} nullif({{}}, 0)", node.expressions[1])
    if not kind:
        r.quotients.append(Quotient(start, at, r.length - 1, origin_of(node)))
    r.put(f" AS {DataType(kind).spark()})" if kind else ")")


# Each writes a call that has a form of its own, and returns whether it did.


def _trim(r: ExpressionRenderer, arguments: list[Any]) -> bool:
    if not arguments or not isinstance(arguments[0], exp.Var):
        if len(arguments) < 2:
            return False
        r.template("trim(BOTH {} FROM {})", arguments[1], arguments[0])
        return True
    side = arguments[0].name.upper()
    what = "{} FROM {}" if len(arguments) == 3 else "FROM {}"
    r.template(f"trim({side} {what})", *arguments[1:])
    return True


def _side_trim(side: str) -> Callable[[ExpressionRenderer, list[Any]], bool]:
    # Spark's function takes the characters first.
    def write(r: ExpressionRenderer, arguments: list[Any]) -> bool:
        if len(arguments) == 2:
            r.template(f"trim({side} {{}} FROM {{}})", arguments[1], arguments[0])
        return len(arguments) == 2

    return write


def _to_timestamp_ltz(r: ExpressionRenderer, arguments: list[Any]) -> bool:
    scale = arguments[1].this if len(arguments) == 2 and arguments[1].is_number else ""
    seconds = {"0": "timestamp_seconds", "3": "timestamp_millis", "6": "timestamp_micros"}
    if scale in seconds:
        r.call(seconds[scale], arguments[:1])
    return scale in seconds


def _extract(r: ExpressionRenderer, arguments: list[Any]) -> bool:
    r.template(f"extract({arguments[0].name} FROM {{}})", arguments[1])
    return True


def _with_unit(r: ExpressionRenderer, arguments: list[Any]) -> bool:
    """TIMESTAMPADD and TIMESTAMPDIFF: the unit is a word."""
    word = "timestampadd" if arguments[0].meta["adds"] else "timestampdiff"
    r.template(f"{word}({arguments[0].name}, {{}}, {{}})", *arguments[1:])
    return True


def _floor(r: ExpressionRenderer, arguments: list[Any]) -> bool:
    if not isinstance(arguments[0], exp.Var):
        return False
    r.template(f"date_trunc('{arguments[0].name}', {{}})", arguments[1])
    return True


def _ceil(r: ExpressionRenderer, arguments: list[Any]) -> bool:
    if not isinstance(arguments[0], exp.Var):
        return False
    unit, time = arguments[0].name, arguments[1]
    start = f"date_trunc('{unit}', {{1}})"
    r.form(f"(CASE WHEN {start} = {{1}} THEN {start} ELSE timestampadd({unit}, 1, {start}) END)", [time])
    return True


def _split_index(r: ExpressionRenderer, arguments: list[Any]) -> bool:
    if isinstance(arguments[2], exp.Literal):
        return False
    # Spark would count -2 from the end, and fail at -1, its element 0.
    r.form(f"(CASE WHEN ({{3}}) >= 0 THEN {functions()['split_index'].spark(3)} END)", arguments)
    return True


def _json_array(r: ExpressionRenderer, arguments: list[Any]) -> bool:
    r.put("concat('[', concat_ws(','")
    for argument in arguments:
        r.put(", ")
        r.form(functions()["json_string"].spark(1), [argument])
    r.put("), ']')")
    return True


def _json_object(r: ExpressionRenderer, arguments: list[Any]) -> bool:
    r.put("to_json(named_struct(")
    for index, argument in enumerate(arguments):
        r.put(", " if index else "")
        r.expr(argument)
    r.put("), map('ignoreNullFields', 'false'))")
    return True


def _json_value(r: ExpressionRenderer, arguments: list[Any]) -> bool:
    before, after = sql_of("\0", arguments[1].this).split("\0")
    r.put(before)
    r.expr(arguments[0])
    r.put(after)
    return True


_RULES: dict[str, Callable[[ExpressionRenderer, list[Any]], bool]] = {
    "trim": _trim,
    "btrim": _side_trim("BOTH"),
    "ltrim": _side_trim("LEADING"),
    "rtrim": _side_trim("TRAILING"),
    "extract": _extract,
    "timestampadd": _with_unit,
    "timestampdiff": _with_unit,
    "floor": _floor,
    "ceil": _ceil,
    "to_timestamp_ltz": _to_timestamp_ltz,
    "split_index": _split_index,
    "json_array": _json_array,
    "json_object": _json_object,
    "get_json_object": _json_value,
}
