"""Exit statuses of ``leat``: stable, so that scripts can tell what went wrong."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

_SQL = {
    "sql-syntax",
    "unknown-relation",
    "unknown-column",
    "ambiguous-column",
    "unknown-function",
    "type-mismatch",
    "not-grouped",
    "not-computable",
    "schema-incompatible",
    "within-required",
    "unsupported",
    "property-required",
    "invalid-property",
    "too-complex",
}


class Exit(IntEnum):
    """What each status means."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    ACCESS = 4
    CONFLICT = 5
    INVALID_SQL = 6
    TIMED_OUT = 7
    UNREACHABLE = 69
    INTERRUPTED = 130


def status_of(problem: dict[str, Any]) -> Exit:
    """The exit status for a problem document."""
    if problem.get("code") in _SQL:
        return Exit.INVALID_SQL
    by_status = {
        404: Exit.NOT_FOUND,
        401: Exit.ACCESS,
        403: Exit.ACCESS,
        409: Exit.CONFLICT,
        412: Exit.CONFLICT,
    }
    return by_status.get(int(problem.get("status") or 0), Exit.FAILURE)
