"""Paths into JSON texts, as json_value takes them: ``$.a."b.c"[0]['d']``."""

from __future__ import annotations

import re

from leatstream.formats.json_slices import at_path, text_literal
from leatstream.formats.text_values import bound

_STEP = re.compile(
    r"""\.(?P<plain>[^\s.\[\]"'*()?@:,]+)|\."(?P<dotted>(?:[^"\\]|\\.)*)"|\[(?P<index>[0-9]{1,9})\]"""
    r"""|\[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]|\[\s*'(?P<single>(?:[^'\\]|\\.)*)'\s*\]""",
    re.DOTALL,
)
# So the engine gives numbers, lists and objects, which it rewrites: 19.90 as 19.9.
_REWRITTEN = r"""["\[{]|-?[0-9]+[.][0-9]+(?:E-?[0-9]+)?\z|-?Infinity\z"""


class UnfitPath(ValueError):
    """The path is none that is built; its text says what is wrong, and ``hint`` what to write."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def steps_of(path: str) -> tuple[str | int, ...]:
    """Names of members and positions in lists, from 0.

    Raises:
        UnfitPath: it is no path, or has a wildcard.
    """
    if not path.startswith("$"):
        raise UnfitPath("A path begins with $.", "Write it as '$.name' or '$.list[0]'.")
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise _unfit(path, at)
        if found["index"] is not None:
            steps.append(int(found["index"]))
        else:
            quoted = next((found[g] for g in ("dotted", "double", "single") if found[g] is not None), None)
            steps.append(
                found["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
            )
        at = found.end()
    return tuple(steps)


def _unfit(path: str, at: int) -> UnfitPath:
    if path.startswith((".*", "[*]", "..", "[?", "[*"), at):
        hint = "Name one value; read a whole list by from_json(text, 'name ARRAY<VARCHAR>') and UNNEST."
        return UnfitPath(f"The path has a wildcard or a filter at character {at + 1}.", hint)
    hint = """Put other names than of letters, digits, _ and - in quotes: '$."a.b"' or "$['a b']\"."""
    return UnfitPath(f"The path cannot be read from character {at + 1} on.", hint)


def sql_of(text: str, path: str) -> str:
    """SQL of what the path leads to: the engine's own function, and the digits where it loses some.

    Args:
        text: SQL of the JSON text.
        path: one that ``steps_of`` takes.
    """
    steps = steps_of(path)
    exact = at_path("t", steps)
    if any(isinstance(step, str) and (not step or set("'?\\") & set(step)) for step in steps):
        return bound(text, "t", exact)  # the engine's paths have no such names
    own = "$" + "".join(f"[{step}]" if isinstance(step, int) else f"['{step}']" for step in steps)
    rewritten = rf"g RLIKE r'\A(?:{_REWRITTEN})' OR g = '0' OR contains(g, '?')"
    found = f"get_json_object(t, {text_literal(own)})"
    return bound(text, "t", bound(found, "g", f"CASE WHEN {rewritten} THEN {exact} ELSE g END"))
