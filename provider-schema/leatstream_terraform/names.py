"""SQL names in paths, import ids and functions, as the service reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote as percent

from leatstream_terraform.codec import UNKNOWN

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*\Z")
_HOLDER = re.compile(r"\{(\w+)(?::(raw))?\}")
#: What names an object beside its path, each part only where it is set: ``{?name,in_schema}`` (RFC 6570).
_QUERY = re.compile(r"\{\?([\w,]+)\}\Z")
_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\s".]+))\s*')


def quote_ident(name: str) -> str:
    """Write a name so that SQL reads it back as itself: plain where possible, else in double quotes."""
    return name if _PLAIN.match(name) else '"' + name.replace('"', '""') + '"'


def fqn(*parts: str) -> str:
    """Join names with dots, each quoted where it must be."""
    return ".".join(quote_ident(part) for part in parts)


def split_fqn(text: str) -> tuple[str, ...] | None:
    """Read a dotted name into parts, unquoted ones folded to lower case; None when it is not one."""
    parts: list[str] = []
    at = 0
    while match := _PART.match(text, at):
        quoted, plain = match.groups()
        parts.append(quoted.replace('""', '"') if quoted is not None else plain.lower())
        at = match.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            return None
        at += 1
    return None


def fill_path(template: str, value: Mapping[str, Any]) -> str:
    """Put an object's names into a REST path, quoted as SQL names and percent-encoded."""
    template, given = _split(template, value)

    def part(match: re.Match[str]) -> str:
        name, raw = match.groups()
        text = str(value[name])
        return percent(text if raw else quote_ident(text), safe="")

    query = "&".join(f"{name}={percent(text, safe='')}" for name, text in given.items())
    return _HOLDER.sub(part, template) + (f"?{query}" if query else "")


def _split(template: str, value: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The template without its query, and the parts of the query that are set."""
    found = _QUERY.search(template)
    if found is None:
        return template, {}
    names = found[1].split(",")
    set_ = {name: str(value[name]) for name in names if value.get(name) not in (None, UNKNOWN)}
    return template[: found.start()], set_


def fill_template(template: str, value: Mapping[str, Any]) -> Any:
    """Compute a name such as ``{database}.{schema}.{name}``; UNKNOWN or None when a part is."""
    parts = [value.get(match.group(1)) for match in _HOLDER.finditer(template)]
    if any(part is UNKNOWN for part in parts):
        return UNKNOWN
    if any(part is None for part in parts):
        return None
    return _HOLDER.sub(lambda match: quote_ident(str(value[match.group(1)])), template)


def import_id(template: str, value: Mapping[str, Any]) -> str:
    """Write the id that ``terraform import`` takes for an object."""
    template, given = _split(template, value)
    query = "&".join(f"{name}={text}" for name, text in given.items())
    return str(fill_template(template, value)) + (f"?{query}" if query else "")


def read_import_id(template: str, text: str) -> dict[str, str] | None:
    """Read an import id back into its names; None when it does not have the template's form.

    Names are exact, as they are in every Terraform attribute (SQL's folding does not apply). Double quotes
    are needed only around a name that holds a separator; a ``:raw`` part is taken as it is and may hold any
    character.
    """
    parts: dict[str, str] = {}
    query = _QUERY.search(template)
    if query is not None:
        template = template[: query.start()]
        text, _, rest = text.partition("?")
        parts = dict(one.partition("=")[::2] for one in rest.split("&") if rest)
        if not all(parts.values()) or not set(parts) <= set(query[1].split(",")):
            return None
    pattern, at = "", 0
    holders = dict(_HOLDER.findall(template))
    # A name that stands alone has no separators to mind.
    bare = r'[^"].*' if len(holders) == 1 else r'[^"./\s]+'
    for match in _HOLDER.finditer(template):
        name, raw = match.groups()
        pattern += re.escape(template[at : match.start()])
        pattern += rf"(?P<{name}>.+)" if raw else rf'(?P<{name}>"(?:[^"]|"")+"|{bare})'
        at = match.end()
    found = re.fullmatch(pattern + re.escape(template[at:]), text.strip())
    if found is None:
        return None
    return parts | {name: part if holders[name] else _exact(part) for name, part in found.groupdict().items()}


def _exact(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
