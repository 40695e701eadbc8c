"""Checks of a configuration that need no service: enums, patterns, exactly-one-of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from leatstream_terraform.codec import UNKNOWN, Path
from leatstream_terraform.diagnostics import Diagnostic
from leatstream_terraform.schema import Attribute, walk

_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: str) -> float | None:
    """Read a duration such as ``1h30m`` or ``45s`` in seconds; None when it is not one."""
    parts = _PARTS.findall(text)
    if not parts or "".join(a + b for a, b in parts) != text:
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)


def check(
    attributes: Mapping[str, Attribute], config: Any, groups: Sequence[Sequence[str]] = ()
) -> list[Diagnostic]:
    """Find everything that is wrong with a configuration by itself; unknown values pass."""
    found = [problem for group in groups for problem in _one_of(group, config, ())]
    for path, item, value in walk(attributes, config):
        if value is None or value is UNKNOWN:
            continue
        found += _value(item, value, path)
        if item.exactly_one_of and item.nesting == "single":
            found += _one_of(item.exactly_one_of, value, path)
    return found


def _value(item: Attribute, value: Any, path: Path) -> list[Diagnostic]:
    label = f"Invalid {item.name}"
    if item.sensitive or (item.write_only and not item.provider_only):
        return []
    if item.enum and value not in item.enum:
        allowed = ", ".join(f'"{one}"' if isinstance(one, str) else str(one) for one in item.enum)
        return [Diagnostic(label, f"{value!r} is not possible here; use one of {allowed}.", path)]
    if item.pattern and isinstance(value, str) and not re.search(item.pattern, value):
        return [Diagnostic(label, _unlike(item, item.pattern, value), path)]
    if item.semantic == "duration" and duration(value) is None:
        return [
            Diagnostic(label, f'{value!r} is not a duration; write such as "30s", "10m" or "1h30m".', path)
        ]
    return []


def _unlike(item: Attribute, pattern: str, value: str) -> str:
    """What is wanted instead of a value, in words first."""
    secret = "@" in value  # before it, in an address, may stand a password
    parts = [f"{'This value' if secret else repr(value)} is not possible here."]
    if item.description:
        parts.append(f"Wanted: {item.description}")
    if item.example:
        parts.append(f'Write such as "{item.example}".')
    tight = value.replace(" ", "")
    if not secret and re.search(pattern, tight):
        parts.append(f'Without blanks it would do: "{tight}".')
    return " ".join([*parts, f"Its pattern: {pattern}"])


def _one_of(group: Sequence[str], config: Any, path: Path) -> list[Diagnostic]:
    if not isinstance(config, dict):
        return []
    given = [name for name in group if config.get(name) is not None]
    if any(config[name] is UNKNOWN for name in given) or len(given) == 1:
        return []
    names = ", ".join(group)
    if given:
        return [
            Diagnostic(
                "Too many alternatives",
                f"Only one of {names} may be set, not {' and '.join(given)}.",
                (*path, given[1]),
            )
        ]
    only = f"{names} must be set." if len(group) == 1 else f"Exactly one of {names} must be set."
    return [Diagnostic("Missing attribute", only, path)]
