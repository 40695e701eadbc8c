"""What two resource types could manage: the grants of a role as its attribute, and each as its own resource.

The two would take each other's changes back at every apply, so a configuration that uses both is an error.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from leatstream_terraform.diagnostics import Diagnostic
from leatstream_terraform.schema import Resource

#: Resource type and attribute, and the names of the object.
_Thing = tuple[str, str, tuple[str, ...]]


class Claims:
    """What one provider process has planned. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Whole attributes that a configuration sets.
        self._whole: set[_Thing] = set()
        #: Attributes of which other resources manage a part, and the type of one of these.
        self._parts: dict[_Thing, str] = {}

    def note(self, resource: Resource, config: Mapping[str, Any]) -> list[Diagnostic]:
        """Remember what a configuration manages; an error if another manages it in another way."""
        with self._lock:
            found = self._note_parts(resource, config)
            return [*found, *self._note_whole(resource, config)]

    def _note_parts(self, resource: Resource, config: Mapping[str, Any]) -> list[Diagnostic]:
        found = []
        for one in resource.excludes:
            where = one.get("where", {})
            names = _names(config, one["names"])
            if names is None or any(config.get(name) != value for name, value in where.items()):
                continue
            thing = (one["resource"], one["attribute"], names)
            self._parts[thing] = resource.name
            if thing in self._whole:
                found.append(_conflict(thing, resource.name, (next(iter(one["names"])),)))
        return found

    def _note_whole(self, resource: Resource, config: Mapping[str, Any]) -> list[Diagnostic]:
        found = []
        names = _names(config, resource.key)
        for name in resource.shared:
            if names is None or config.get(name) is None:
                continue
            thing = (resource.name, name, names)
            self._whole.add(thing)
            if thing in self._parts:
                found.append(_conflict(thing, self._parts[thing], (name,)))
        return found


def _names(config: Mapping[str, Any], attributes: Iterable[str]) -> tuple[str, ...] | None:
    """The names of an object; None where one is not known yet."""
    names = tuple(config.get(name) for name in attributes)
    return tuple(map(str, names)) if all(isinstance(name, str) for name in names) else None


def _conflict(thing: _Thing, part: str, path: tuple[str, ...]) -> Diagnostic:
    whole, attribute, names = thing
    return Diagnostic(
        f"{part} and the {attribute} of {whole} {'.'.join(names)} exclude each other",
        f"{whole} with {attribute} manages all of them, and would remove those of {part}. Use one of "
        f"the two: leave {attribute} out of {whole}, or write what {part} adds into it.",
        path,
    )
