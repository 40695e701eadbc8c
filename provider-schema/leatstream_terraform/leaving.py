"""What the same plan deletes, and the order that the service asks for.

Terraform orders deletions by references, which an imported configuration does not have. Ten calls run at a
time, so calls that only wait for others would soon hold all ten. Therefore each planned deletion keeps the
ones planned so far (in the provider's private data), and a call that is refused for its dependents deletes
those of them that leave too: their own calls then find them gone. What the plan does not delete stays.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from leatstream_terraform.codec import UNKNOWN
from leatstream_terraform.names import fill_path, import_id
from leatstream_terraform.schema import Resource

#: Seconds without any progress after which a dependent is not waited for any more.
IDLE = 5.0
#: So many of the deletions planned last go along with each: the others are in the data of other objects.
_KEPT = 200
#: A relation is named by its kind in messages, and by another one in some.
_RELATIONS = ("stream", "changelog", "table", "materialized view", "view")
#: A planned deletion: its REST target and what messages call it and what is deleted with it.
Entry = list[str]


class Leaving:
    """The planned deletions of one provider process, and those under way. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._planned: dict[str, tuple[str, ...]] = {}
        #: Thread of each deletion that is under way; whether it waits for others.
        self._active: dict[int, bool] = {}
        self._last = time.monotonic()

    def note(self, resource: Resource, prior: Mapping[str, Any]) -> list[Entry]:
        """Remember that the plan deletes this object; what is known of the others."""
        with self._lock:
            self._planned[target(resource, prior)] = _names(resource, prior)
            newest = list(self._planned.items())[-_KEPT:]
        return [[path, *names] for path, names in newest]

    @contextmanager
    def under_way(self, known: Sequence[Entry]) -> Iterator[None]:
        """Count one deletion, and learn what its plan knew of the others."""
        with self._lock:
            self._planned |= {one[0]: tuple(one[1:]) for one in known if one}
            self._active[threading.get_ident()] = False
            self._last = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                del self._active[threading.get_ident()]
                self._last = time.monotonic()

    def waits(self) -> bool:
        """Note that this thread's deletion waits; False where all do, and have for a while."""
        with self._lock:
            self._active[threading.get_ident()] = True
            return not all(self._active.values()) or time.monotonic() - self._last <= IDLE

    def goes_on(self) -> None:
        """Note that this thread has deleted something."""
        with self._lock:
            self._active[threading.get_ident()] = False
            self._last = time.monotonic()

    def find(self, problem: Mapping[str, Any]) -> list[str]:
        """The targets of the planned deletions among the dependents that the service names."""
        wanted = {_family(str(one)) for one in problem.get("dependents") or []}
        with self._lock:
            return [path for path, names in self._planned.items() if wanted.intersection(names)]

    def covers(self, problem: Mapping[str, Any]) -> bool:
        """Whether the plan deletes every dependent that the service names."""
        wanted = {_family(str(one)) for one in problem.get("dependents") or []}
        with self._lock:
            known = {name for names in self._planned.values() for name in names}
        return bool(wanted) and wanted <= known


def target(resource: Resource, prior: Mapping[str, Any]) -> str:
    """Path and parameters of the request that deletes an object."""
    given: dict[str, str] = {}
    for key, template in resource.delete_query.items():
        value: Any = template
        if template.startswith("{"):
            value = prior.get(template.strip("{}"))
            value = "true" if value is True else None if value in (None, False, UNKNOWN) else str(value)
        if value is not None:
            given[key] = value
    path = fill_path(resource.path, prior)
    return f"{path}?{urlencode(given)}" if given else path


def _names(resource: Resource, prior: Mapping[str, Any]) -> tuple[str, ...]:
    """What messages call an object and what is deleted with it."""
    noun = resource.name.removeprefix("leatstream_").replace("_", " ")
    shown = {import_id(resource.import_id, prior), str(prior.get("name"))}
    found = {_family(f"{noun} {name}") for name in shown}
    made = [prior.get("sink"), *(prior.get("sinks") or []), *(prior.get("relations") or [])]
    found |= {f"relation {name}" for name in made if isinstance(name, str)}
    found |= {f"query {name}" for name in prior.get("queries") or [] if isinstance(name, str)}
    return tuple(sorted(found))


def _family(text: str) -> str:
    noun = next((kind for kind in _RELATIONS if text.startswith(f"{kind} ")), None)
    return text if noun is None else f"relation {text.removeprefix(noun).strip()}"
