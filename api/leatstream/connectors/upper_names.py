"""Names in stores that fold to upper case, where ours fold to lower case.

``orders`` stands for ``ORDERS`` there, which is what everybody gets who writes no quotes. Every other name
stands for itself. So a name in lower case, which only quotes make there, has no name here.
"""

from __future__ import annotations

import re

from leatstream.model.names import PLAIN

_UPPER = re.compile(r"[A-Z_][A-Z0-9_$]*\Z")


def canonical(name: str) -> str:
    """The one name here of what a user may also write as the store does: ``ORDERS`` is ``orders``."""
    return name.lower() if _UPPER.match(name) else name


def stored(name: str) -> str:
    """The name in the store of a name here."""
    return name.upper() if PLAIN.match(name) else name


def shown(name: str) -> str | None:
    """The name here of a name in the store; None where none stands for it."""
    if _UPPER.match(name):
        return name.lower()
    return None if PLAIN.match(name) or '"' in name else name


def quoted(*names: str) -> str:
    """Names here, as statements of the store write them: in quotes, for reserved words, with dots between."""
    return ".".join('"' + stored(name).replace('"', '""') + '"' for name in names)


def for_login(name: str) -> str:
    """A name of a role, a warehouse or a database as clients send it: in quotes only if it needs them."""
    upper = stored(canonical(name))
    return upper if _UPPER.match(upper) else quoted(name)
