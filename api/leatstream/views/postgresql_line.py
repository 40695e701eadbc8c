"""How connections to the database of catalog and views are watched over.

A host that vanishes says no word: without these a call to it would last until TCP gives up, for many minutes.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

_LINE = {
    "connect_timeout": 10,  # seconds, as those below
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}


def line_options(given: Container[str]) -> dict[str, Any]:
    """Options of libpq, but for those that the URL has ``given`` itself."""
    return {name: value for name, value in _LINE.items() if name not in given}
