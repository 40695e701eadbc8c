"""How connections to the database of catalog and views are watched over.

A host that vanishes says no word: without these a call to it would last until TCP gives up, for many minutes.
"""

from __future__ import annotations

from typing import Final

LINE: Final[dict[str, int]] = {
    "connect_timeout": 10,  # seconds, as those below
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
