"""What this plan is going to create, so that a query may be planned before its sources exist.

Terraform plans objects in the order of their references, all in one provider process; each planned object is
noted here. A query that reads a noted relation is validated with it (``assume``); a service that cannot do
that says "unknown relation", which then means "known after apply" and not an error.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from leatstream_terraform.codec import UNKNOWN, has_unknown
from leatstream_terraform.names import fill_template, fqn, split_fqn
from leatstream_terraform.plan import body
from leatstream_terraform.schema import Resource

#: Faults that a planned object explains by not being there yet.
MISSING = frozenset(
    {
        "unknown-relation",
        "not-found",
        "entity-not-found",
        "unknown-store",
        "unknown-database",
        "unknown-schema",
    }
)
#: Faults that may follow from a planned object which is not there, or not changed, yet.
FOLLOWING = frozenset({"unknown-column", "ambiguous-column", "type-mismatch", "property-required"})
#: Which planned objects can explain a fault; any for the others.
_BLAMED = {"unknown-relation": ("relations",), "entity-not-found": ("entities", "relations")}
_CREATES = re.compile(
    r"\bCREATE\s+(?:VIRTUAL\s+)?(?:STREAM|CHANGELOG|TABLE|MATERIALIZED\s+VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r'((?:"(?:[^"]|"")+"|[^\s".(;]+)(?:\.(?:"(?:[^"]|"")+"|[^\s".(;]+))*)',
    re.IGNORECASE,
)
#: Kinds of which a validation receives only what its statement leads to.
_REACHED = ("relations", "queries", "applications", "functions", "function_sources")


class Foreseen:
    """Planned objects of one provider process, by kind and name. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: dict[str, dict[str, dict[str, Any]]] = {}
        self._anything = False
        self._leaving: dict[str, str] = {}
        self._changing: set[str] = set()

    def note(
        self,
        resource: Resource,
        planned: Mapping[str, Any],
        config: Mapping[str, Any] | None = None,
        exists: bool = False,
    ) -> None:
        """Remember a planned object.

        Args:
            resource: its type.
            planned: its planned value.
            config: its configuration, which alone holds write-only values: without a store's password the
                service could not look at the sources in it.
            exists: it exists and changes.
        """
        kind = resource.assume
        if kind is None:
            return
        with self._lock:
            if kind in ("queries", "applications"):
                self._note_statement(kind, planned)
                made = _made_by_query(planned) if kind == "queries" else _made_by_application(planned)
                self._note_made(made, exists)
                return
            if any(planned.get(name) is UNKNOWN for name in resource.key):
                self._anything = True
                return
            document = {**resource.constants, **body(resource.attributes, planned, config)}
            known = {key: value for key, value in document.items() if not has_unknown(value)}
            names = {name: planned[name] for name in resource.key}
            # Quoted but for the raw parts: {store}/{name:raw} and {database}.{schema}.{name} read like SQL.
            name = str(fill_template(resource.import_id, planned))
            # A store whose address is not known yet is a name, no detail.
            located = all(any(one in known for one in group) for group in resource.exactly_one_of)
            self._items.setdefault(kind, {})[name] = names | known if located else {}
            if exists and kind == "relations":
                self._changing.add(name)

    def _note_statement(self, kind: str, planned: Mapping[str, Any]) -> None:
        if isinstance(planned.get("sql"), str) and isinstance(planned.get("name"), str):
            members = ("name", "sql", "database", "schema", "store")
            known = {key: planned[key] for key in members if isinstance(planned.get(key), str)}
            self._items.setdefault(kind, {})[str(planned["name"])] = known

    def _note_made(self, names: list[str] | None, exists: bool) -> None:
        if names is None:
            # What this will write is not known, so it may be any relation that is missing now.
            self._anything = True
            return
        for name in names:
            self._items.setdefault("relations", {}).setdefault(name, {})
            if exists:
                self._changing.add(name)

    def leaves(self, resource: Resource, prior: Mapping[str, Any]) -> None:
        """Remember that the same plan deletes or replaces this object."""
        if resource.assume == "queries" and isinstance(prior.get("sink"), str):
            with self._lock:
                self._leaving[str(prior["sink"])] = str(prior.get("name"))

    def leaving(self, fault: Mapping[str, Any]) -> str | None:
        """The query whose planned end makes room for the relation that a fault calls taken; else None."""
        if str(fault.get("code") or "").replace("_", "-") != "already-exists":
            return None
        with self._lock:
            gone = dict(self._leaving)
        text = str(fault.get("detail") or "")
        return next((name for sink, name in gone.items() if sink in text), None)

    def assume(self, request: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """The planned objects as ``assume`` of ``statements:validate``; without those of no known detail.

        Of relations, queries, applications and functions only those that the request may come to mean: with
        all of a large plan it would be larger than a request may be, and each would be looked up each time.
        """
        with self._lock:
            found = {
                kind: {name: one for name, one in items.items() if one}
                for kind, items in sorted(self._items.items())
            }
        waiting = [(kind, name) for kind in _REACHED if kind in found for name in found[kind]]
        named: list[Any] = [request]
        reached: set[tuple[str, str]] = set()
        while named:
            text = "\n".join(_texts(named))
            more = [one for one in waiting if _is_named(text, *one, found[one[0]][one[1]])]
            named = [found[kind][name] for kind, name in more]
            waiting = [one for one in waiting if one not in more]
            reached.update(more)
        sent = {
            kind: [one for name, one in items.items() if kind not in _REACHED or (kind, name) in reached]
            for kind, items in found.items()
        }
        # Of a topic or table the plan of a query asks for numbers; a live relation may stand for any of them.
        sent["entities"] = [_without_lists(one) for one in sent.get("entities", ())]
        return {kind: items for kind, items in sent.items() if items}

    def explains(self, fault: Mapping[str, Any], sql: str, context: Mapping[str, Any]) -> bool:
        """Tell whether a fault of a validation only says that something planned is not there yet."""
        code = str(fault.get("code") or "").replace("_", "-")
        if code not in MISSING:
            return False
        with self._lock:
            if self._anything:
                return True
            kinds = _BLAMED.get(code, tuple(self._items))
            names = {name for kind in kinds for name in self._items.get(kind, ())}
            # An entity is named without its store in a fault.
            names |= {one["name"] for one in self._items.get("entities", {}).values() if "entities" in kinds}
        missing = str(fault["fqn"]) if fault.get("fqn") else _fault_name(fault, sql)
        if missing is not None:
            full = qualify(missing, context)
            if full in names or missing in names:
                return True
            if full is None and _last(missing) in {_last(name) for name in names}:
                return True
        text = str(fault.get("detail") or "")
        return any(_mentions(text, name) for name in names)

    def touches(self, sql: str, changing: bool = False) -> bool:
        """Tell whether a statement names a relation that is planned, by its last name; or only changes."""
        with self._lock:
            names = {
                _last(name) for name in (self._changing if changing else self._items.get("relations", ()))
            }
            anything = self._anything and not changing
        return anything or any(
            re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.IGNORECASE) for name in names
        )


def _is_named(text: str, kind: str, name: str, planned: Mapping[str, Any]) -> bool:
    """Whether a text names a planned object, or for all that can be seen may name what it makes."""
    names = [_last(name)]
    if kind in ("queries", "applications"):
        names = [_last(one.group(1)) for one in _CREATES.finditer(planned["sql"])]
        if not names and not planned["sql"].lstrip().upper().startswith("INSERT"):
            return True
    lower = text.lower()
    # Looked for as it is first: of hundreds of planned objects hardly any is named.
    return any(
        one.lower() in lower and re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text, re.IGNORECASE)
        for made in names
        for one in {made, made.replace('"', '""'), made.replace("'", "''")}
    )


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _without_lists(entity: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: {k: v for k, v in value.items() if not isinstance(v, (list, dict))}
        if isinstance(value, dict)
        else value
        for key, value in entity.items()
    }


def _made_by_query(planned: Mapping[str, Any]) -> list[str] | None:
    """What a query makes; None if that is not known."""
    sink, sql = planned.get("sink"), planned.get("sql")
    found = _CREATES.search(sql) if isinstance(sql, str) else None
    name = sink if isinstance(sink, str) else qualify(found.group(1), planned) if found else None
    if name is not None:
        return [name]
    return None if sql is UNKNOWN or found else []


def _made_by_application(planned: Mapping[str, Any]) -> list[str] | None:
    """What an application makes; None if that is not known."""
    made: list[str] = []
    for attribute in ("sinks", "relations"):
        listed = planned.get(attribute)
        if not isinstance(listed, list) or any(not isinstance(one, str) for one in listed):
            return None
        made += listed
    return made


def _last(name: str) -> str:
    return (split_fqn(name) or (name,))[-1]


def _mentions(text: str, name: str) -> bool:
    # A part of a longer dotted name is another name; a dot that ends the sentence is none.
    pattern = rf'(?<![\w".]){re.escape(name)}(?!\.?[\w"])|(?<!\.)"{re.escape(name)}"(?!\.[\w"])'
    return re.search(pattern, text, re.IGNORECASE) is not None


def _fault_name(fault: Mapping[str, Any], sql: str) -> str | None:
    position = fault.get("position")
    if not isinstance(position, Mapping) or position.get("offset") is None:
        return None
    start = int(position["offset"])
    # The position may cover the first part of a dotted name only.
    found = re.match(
        r'(?:"(?:[^"]|"")+"|[^\s".,();\']+)(?:\s*\.\s*(?:"(?:[^"]|"")+"|[^\s".,();]+))*', sql[start:]
    )
    return found.group(0) if found else None


def qualify(name: str, context: Mapping[str, Any]) -> str | None:
    """A relation's full name, with the database and schema of the context where the text leaves them out."""
    parts = split_fqn(name)
    if parts is None or len(parts) > 3:
        return None
    given = [context.get(key) for key in ("database", "schema")][: 3 - len(parts)]
    if any(not isinstance(part, str) for part in given):
        return None
    return fqn(*(str(part) for part in given), *parts)
