"""How calls are written for Spark: as they are, under another name, or by a rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from leatstream.errors import InternalError
from leatstream.model.objects import ROWTIME
from leatstream.sql.passes.functions import BUILT_AGGREGATES, PLAIN, RENAMED
from leatstream.sql.passes.quoting import name

if TYPE_CHECKING:
    from leatstream.sql.passes.render import Renderer


def write_call(r: Renderer, node: Any) -> None:
    """Write a function call, by its rule or as it is."""
    word, arguments = str(node.this), node.expressions
    if "bound" in node.meta:
        ref, column, _ = node.meta["bound"]
        value = f"{name(ref)}.{name(column)}"
        r.put(f"unix_millis({value})" if column == ROWTIME else value)
    elif word in _RULES:
        _RULES[word](r, arguments)
    elif word in _BARE and not arguments:
        r.put(f"{word}()")
    elif word in PLAIN or word in RENAMED or word in BUILT_AGGREGATES:
        r.call(RENAMED.get(word, word), arguments)
    else:
        raise InternalError("internal", f"The function {word} has no Spark form.")


def _trim(r: Renderer, arguments: list[Any]) -> None:
    if not arguments or not isinstance(arguments[0], exp.Var):
        r.call("trim", arguments)
        return
    side = arguments[0].name.upper()
    what = "{} FROM {}" if len(arguments) == 3 else "FROM {}"
    r.template(f"trim({side} {what})", *arguments[1:])


def _to_timestamp_ltz(r: Renderer, arguments: list[Any]) -> None:
    scale = arguments[1].this if len(arguments) == 2 and arguments[1].is_number else ""
    seconds = {"0": "timestamp_seconds", "3": "timestamp_millis", "6": "timestamp_micros"}
    if scale in seconds:
        r.call(seconds[scale], arguments[:1])
    else:
        r.call("to_timestamp_ltz", arguments)


def _split_index(r: Renderer, arguments: list[Any]) -> None:
    # Flink counts from 0 and gives NULL past the end; Spark's split reads a regular expression.
    text, separator, index = arguments
    r.template(
        "try_element_at(split({}, concat('\\\\Q', {}, '\\\\E'), -1), ({}) + 1)", text, separator, index
    )


def _regexp_extract(r: Renderer, arguments: list[Any]) -> None:
    # Without a group Flink gives the whole match, Spark the first group.
    if len(arguments) == 3:
        r.call("regexp_extract", arguments)
    else:
        r.template("regexp_extract({}, {}, 0)", *arguments)


def _sha(bits: int) -> Callable[[Renderer, list[Any]], None]:
    return lambda r, arguments: r.template(f"sha2({{}}, {bits})", *arguments)


def _extract(r: Renderer, arguments: list[Any]) -> None:
    r.template(f"extract({arguments[0].name} FROM {{}})", arguments[1])


_RULES: dict[str, Callable[[Renderer, list[Any]], None]] = {
    "trim": _trim,
    "extract": _extract,
    "to_timestamp_ltz": _to_timestamp_ltz,
    "split_index": _split_index,
    "regexp_extract": _regexp_extract,
    **{f"sha{bits}": _sha(bits) for bits in (224, 256, 384, 512)},
}
_BARE = ("current_timestamp", "current_date", "localtimestamp")
