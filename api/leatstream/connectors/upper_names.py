"""Names of stores that fold identifiers to upper case, as users write them: in lower case.

Names are always sent quoted, so that reserved words are names like any other. A name in lower case means the
one that such a store makes of it without quotes; every other name is sent as it is.
"""

from __future__ import annotations

import re

_LOWER = re.compile(r"[a-z_][a-z0-9_]*\Z")
_UPPER = re.compile(r"[A-Z_][A-Z0-9_]*\Z")


def sent(name: str) -> str:
    """The name as the store has it, without quotes: ``orders`` is ORDERS, ``Orders`` is Orders."""
    return name.upper() if _LOWER.match(name) else name


def shown(name: str) -> str:
    """A name of the store's as users write it: ORDERS is ``orders``, ``A$B`` stays."""
    return name.lower() if _UPPER.match(name) else name


def reachable(name: str) -> bool:
    """Whether users can write a name of the store's; ``"orders"``, quoted in lower case, they cannot."""
    return sent(shown(name)) == name


def quoted(*names: str) -> str:
    """Names of the store's in a statement, with dots between them."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)
