"""Names in stores that fold to upper case, where ours fold to lower case.

``orders`` stands for ``ORDERS`` there, which is what everybody gets who writes no quotes. Every other name
stands for itself. So a name in lower case, which only quotes make there, has no name here.
"""Names of stores that fold identifiers to upper case, as users write them: in lower case.

Names are always sent quoted, so that reserved words are names like any other. A name in lower case means the
one that such a store makes of it without quotes; every other name is sent as it is.
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


def quoted(name: str) -> str:
    """A name here, as statements of the store write it: in quotes, so that no reserved word disturbs."""
    return '"' + stored(name).replace('"', '""') + '"'


def for_login(name: str) -> str:
    """A name of a role, a warehouse or a database as clients send it: in quotes only if it needs them."""
    upper = stored(canonical(name))
    return upper if _UPPER.match(upper) else quoted(name)
_LOWER = re.compile(r"[a-z_][a-z0-9_]*\Z")
_UPPER = re.compile(r"[A-Z_][A-Z0-9_]*\Z")


def sent(name: str) -> str:
    """The name as the store has it, without quotes: ``orders`` is ORDERS, ``Orders`` is Orders."""
    return name.upper() if _LOWER.match(name) else name


def shown(name: str) -> str:
    """A name of the store's as users write it: ORDERS is ``orders``, ``A$B`` stays."""


def reachable(name: str) -> bool:
    """Whether users can write a name of the store's; ``"orders"``, quoted in lower case, they cannot."""
    return sent(shown(name)) == name


def quoted(*names: str) -> str:
    """Names of the store's in a statement, with dots between them."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)
