"""Which extra of the package a missing library belongs to: the bare package has the command line only."""

from __future__ import annotations

import re
from importlib import metadata

from leatstream.model.extras import install_extra

# Libraries that are imported under another name than they are installed by.
_INSTALLED_AS = {"yaml": "pyyaml", "google": "protobuf", "grpc": "grpcio"}
_OF_EXTRA = re.compile(r"""([\w.-]+).*;.*\bextra == ["']([\w-]+)["']""")


def extra_of(module: str | None) -> str | None:
    """The extra to install for a module: ``server`` if that has it, else the smallest; None where none has.

    Args:
        module: as it is imported, such as ``sqlalchemy.orm``.
    """
    top = (module or "").partition(".")[0]
    wanted = _normal(_INSTALLED_AS.get(top, top))
    extras: dict[str, set[str]] = {}
    for requirement in metadata.requires("leatstream") or ():
        found = _OF_EXTRA.match(requirement)
        if found and found[2] != "all":
            extras.setdefault(found[2], set()).add(_normal(found[1]))
    having = [extra for extra, names in extras.items() if wanted in names]
    return min(having, key=lambda extra: (extra != "server", len(extras[extra]), extra), default=None)


def missing(error: ModuleNotFoundError) -> str | None:
    """What to say of a library that is missing; None where it is no library of an extra, but a fault."""
    extra = extra_of(error.name)
    if extra is None:
        return None
    return (
        f"This command needs {error.name}, which is not installed: it belongs to the extra `{extra}`. "
        f"Install it: {install_extra(extra)}"
    )


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
