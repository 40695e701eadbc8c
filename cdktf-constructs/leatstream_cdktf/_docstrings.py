"""Docstrings of generated code, from the descriptions in ``provider.json``."""

from __future__ import annotations

import textwrap

from leatstream_terraform.schema import Attribute

#: Characters of a line.
WIDTH = 110


def docstring(text: str, indent: str = "") -> str:
    """A docstring, wrapped; paragraphs are kept and lines starting with two spaces stay lists."""
    text = text.strip().replace("\\", "\\\\").replace('"""', "'''")
    if text.endswith('"'):
        text = text[:-1] + '\\"'
    if len(indent) + len(text) + 6 <= WIDTH and "\n" not in text:
        return f'{indent}"""{text}"""'
    out: list[str] = []
    for index, line in enumerate(text.split("\n")):
        lead = len(line) - len(line.lstrip())
        first = indent + " " * lead + ('"""' if index == 0 else "")
        later = indent + " " * (lead + 4 if lead else 0)
        out += textwrap.wrap(line.strip(), WIDTH, initial_indent=first, subsequent_indent=later) or [""]
    return "\n".join([*out, f'{indent}"""'])


def notes(attribute: Attribute) -> str:
    """An attribute's description with what a user must know beside it."""
    parts = [attribute.description.strip() or f"``{attribute.name}``."]
    if attribute.enum:
        parts.append("One of " + ", ".join(f"``{value}``" for value in attribute.enum) + ".")
    if attribute.exactly_one_of:
        parts.append(
            "Exactly one of " + ", ".join(f"``{value}``" for value in attribute.exactly_one_of) + "."
        )
    if attribute.has_default and attribute.default is not None:
        parts.append(f"Default: ``{attribute.default}``.")
    if attribute.replace:
        parts.append("A change replaces the object.")
    if attribute.write_only:
        parts.append("Write-only: never kept in Terraform's state.")
    elif attribute.sensitive:
        parts.append("Sensitive: Terraform does not print it.")
    return " ".join(part if part.endswith((".", "!", "?")) else part + "." for part in parts)
