"""Lists on a terminal: as wide as it is, with short names and times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.cells import cell_len, set_cell_size

from leatstream.model.names import quote, split

GAP = 3  # columns of the terminal between two of the table
_LEAST = 8  # columns that are left of a long text
_TIMES = ("at", "since")
_QUALIFIED = ("fqn", "sink", "sources", "relations")
# What a list shows only when it is asked for everything.
_ASIDE = ("owner", "created_at", "updated_at")
# Texts that say less than the others, and so are cut before them.
_CUT_FIRST = ("sql", "properties", "configs", "comment")
_UNITS = ((60, "s"), (3600, "m"), (86_400, "h"))
_MONTH = 60 * 86_400


def age(text: str, now: datetime | None = None) -> str:
    """How long ago a time was: ``5s ago``, ``2m ago``, ``3h ago``, ``4d ago``; after two months its date."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    if not -1 <= seconds < _MONTH:
        return at.date().isoformat()
    size, divisor = max(0, int(seconds)), 1
    for limit, unit in _UNITS:
        if size < limit:
            return f"{size // divisor}{unit} ago"
        divisor = limit
    return f"{size // 86_400}d ago"


def fitted(
    heads: Sequence[str], rows: Sequence[Sequence[str]], width: int, now: datetime | None = None
) -> tuple[list[str], list[list[str]], int]:
    """A list made to fit.

    Args:
        heads: names of the columns.
        rows: their cells.
        width: of the terminal.
        now: the present, for tests.

    Returns:
        heads, rows, and how many columns had to be left out; those of a list's metadata do not count.
    """
    kept = [at for at, head in enumerate(heads) if head not in _ASIDE or len(heads) == 1]
    names = [heads[at] for at in kept]
    cells = [[_short(heads[at], row[at], now) for at in kept] for row in rows]
    if sum(_widths(names, cells)) + GAP * (len(names) - 1) > width:
        cells = _unqualified(names, cells)
    widths = _shrunk(names, _widths(names, cells), width)
    shown = len(widths)
    pairs = [[_cut(text, size) for text, size in zip(row, widths, strict=False)] for row in cells]
    return names[:shown], pairs, len(names) - shown


def _short(head: str, text: str, now: datetime | None) -> str:
    plain = " ".join(text.split())
    return age(plain, now) if plain and head.rpartition("_")[2] in _TIMES else plain


def _widths(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cell_len, (head, *(row[at] for row in rows)))) for at, head in enumerate(heads)]


def _shrunk(heads: Sequence[str], widths: list[int], width: int) -> list[int]:
    """Widths that fit: long texts are cut first, then columns at the end left out. The first one stays."""
    least = [max(_LEAST, cell_len(head)) for head in heads]
    while sum(widths) + GAP * (len(widths) - 1) > width:
        over = sum(widths) + GAP * (len(widths) - 1) - width
        loose = [at for at, size in enumerate(widths) if at and size > least[at]]
        if loose:
            loose = [at for at in loose if heads[at] in _CUT_FIRST] or loose
            at = max(loose, key=lambda one: widths[one])
            widths[at] = max(least[at], widths[at] - max(1, over // len(loose)))
        elif len(widths) > 1:
            widths.pop()
        else:
            return [width]
    return widths


def _cut(text: str, size: int) -> str:
    return text if cell_len(text) <= size else set_cell_size(text, size - 1).rstrip() + "…"


def _unqualified(heads: Sequence[str], rows: list[list[str]]) -> list[list[str]]:
    """Relations without their database and schema, where all of a list are in the same."""
    at = [i for i, head in enumerate(heads) if head in _QUALIFIED]
    names = [_parts(name) for row in rows for i in at for name in row[i].split(", ") if name]
    if not names or any(len(name) != 3 or name[:2] != names[0][:2] for name in names):
        return rows
    return [
        [", ".join(_last(n) for n in text.split(", ")) if i in at else text for i, text in enumerate(row)]
        for row in rows
    ]


def _last(name: str) -> str:
    return quote(_parts(name)[-1]) if name else name


def _parts(name: str) -> tuple[str, ...]:
    try:
        return split(name)
    except ValueError:  # such as several names, or one that was cut
        return (name,)


def is_origin(value: Any) -> bool:
    """Whether it is a property as a plan shows it: its value, and where that comes from."""
    return isinstance(value, dict) and "origin" in value and set(value) <= {"value", "origin", "from"}
