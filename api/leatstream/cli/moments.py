"""Times as people give them: exact ones, and spans before now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from leatstream.model.instants import iso, milliseconds

_SPANS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(value: str) -> str:
    """A time as REST takes it: as it is written, or of a span such as ``90m`` that long before now."""
    span = re.fullmatch(r"(\d{1,6})([smhd])", value)
    if span is not None:
        before = timedelta(**{_SPANS[span[2]]: int(span[1])})
        return iso(milliseconds(datetime.now(UTC) - before))
    try:
        datetime.fromisoformat(value)
    except ValueError:
        detail = (
            f"{value} is not a time: write 2026-01-31T09:00:00Z, or a span before now such as 90m, 6h or 2d"
        )
        raise typer.BadParameter(detail) from None
    return value


SinceOption = Annotated[
    str | None,
    typer.Option(
        help="Only from this time on, such as 2026-01-31T09:00:00Z, or 6h.", metavar="TIME", parser=moment
    ),
]
UntilOption = Annotated[
    str | None, typer.Option(help="Only before this time, such as 1h.", metavar="TIME", parser=moment)
]
