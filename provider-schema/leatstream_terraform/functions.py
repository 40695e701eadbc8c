"""Provider functions: ``provider::leatstream::fqn`` and ``provider::leatstream::quote_ident``."""

from __future__ import annotations

from leatstream_terraform.names import fqn, quote_ident


def call(name: str, arguments: list[str]) -> str:
    """Run a function.

    Raises:
        ValueError: with (message, index of the argument at fault), or there is no such function.
    """
    if name not in ("fqn", "quote_ident"):
        raise ValueError(f"leatstream has no function {name}", None)
    for index, argument in enumerate(arguments):
        if not argument:
            raise ValueError("a name cannot be empty", index)
    return quote_ident(arguments[0]) if name == "quote_ident" else fqn(*arguments)
