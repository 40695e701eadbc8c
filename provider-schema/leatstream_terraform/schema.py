"""``provider.json`` as objects: what each resource looks like and how it maps onto REST.

The file's format is described in ``provider-schema/README.md``; ``generate.py`` writes it from the OpenAPI
document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from leatstream_terraform.codec import UNKNOWN, Key, Path, number

Mode = Literal["required", "optional", "computed", "optional_computed"]
Nesting = Literal["single", "list", "map"]
FORMAT = 1
# Of resources that rotate: what only an update reads.
_ROTATION = ("rotate_when", "grace_minutes")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute.

    Attributes:
        name: Terraform's name.
        rest: name in REST bodies.
        type: cty type (``"string"``, ``["map", "string"]``, …), or None when nested.
        nesting: how nested objects repeat; None when not nested.
        attributes: the nested object's attributes.
        mode: who gives the value.
        path: the value is part of the object's REST path, not of its body.
        replace: a change needs a new object.
        volatile: computed by the service and may change with every write.
        provider_only: a change alone writes nothing; timeouts, or what is sent along with the next write.
        trigger: provider-only, but a change makes the provider write the object again.
        semantic: how two values are compared by meaning: ``sql``, ``type``, ``word`` (without case), or
            ``unless_key``: not at all for a column that ``primary_key`` beside the columns names
            (``duration`` only checks; ``change`` is what an update does to a job).
        default: value when the configuration has none; ``has_default`` separates it from null.
        default_from: top-level attribute whose value stands for none here, only to decide on replacement.
        template: computed from other attributes, as ``{database}.{schema}.{name}``, each part quoted as SQL
            does.
        infer: where ``statements:validate`` returns the value, such as ``plan.sink.fqn``.
        preview: where the plan of a CREATE STREAM has the value that a stream's configuration leaves out.
        unmanaged: where the configuration leaves it out, others give the value; it is read and not written.
        kept: only the answer to a write has the value; a later answer without it changes nothing.
        example: a value that matches the pattern, for errors.
        exactly_one_of: of a nested object, names of which exactly one must be set.
    """

    name: str
    rest: str
    type: Any
    nesting: Nesting | None
    attributes: Mapping[str, Attribute]
    mode: Mode
    description: str = ""
    path: bool = False
    sensitive: bool = False
    write_only: bool = False
    replace: bool = False
    volatile: bool = False
    provider_only: bool = False
    trigger: bool = False
    semantic: str | None = None
    default: Any = None
    has_default: bool = False
    default_from: str | None = None
    template: str | None = None
    infer: str | None = None
    preview: str | None = None
    unmanaged: bool = False
    kept: bool = False
    enum: tuple[Any, ...] = ()
    pattern: str | None = None
    example: str | None = None
    exactly_one_of: tuple[str, ...] = ()

    @property
    def computed(self) -> bool:
        """Whether the provider may choose the value."""
        return self.mode in ("computed", "optional_computed")

    @property
    def configurable(self) -> bool:
        """Whether a configuration may set the value."""
        return self.mode != "computed"


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource type or data source type.

    Attributes:
        path: REST path with ``{attribute}`` place holders; ``{attribute:raw}`` is sent as it is, others as
            SQL names.
        key: attributes that name the object, in the order of the import id.
        import_id: form of the import id, such as ``{store}/{name}``.
        wait: how to wait for the object to become ready; see ``provider-schema/README.md``.
        delete_query: query parameters of DELETE; ``{attribute}`` stands for an attribute's value.
        assume: key under which ``statements:validate`` takes a planned object of this type.
        warn: where an object's own health is found, for a warning after a write; which query string makes a
            PUT show it without a write.
        live: the service keeps nothing of what was written and returns what is. What the configuration does
            not name is then not read.
        constants: members of the REST body that are the same for every object of this type.
        shared: attributes that others give where the configuration leaves them out; a write without one must
            not fail because another has changed it meanwhile.
        excludes: attributes of other resources that may not manage the same thing; see
            ``provider-schema/README.md``.
        create: method of the request that makes an object.
        rotates: an update is ``POST <path>:rotate``, which makes a new value.
        ephemeral: what differs in the ephemeral resource of this type: ``description``, ``descriptions`` and
            ``defaults`` of attributes; None if there is none.
    """

    name: str
    description: str
    path: str
    key: tuple[str, ...]
    import_id: str
    attributes: Mapping[str, Attribute]
    exactly_one_of: tuple[tuple[str, ...], ...] = ()
    wait: Mapping[str, Any] | None = None
    delete_query: Mapping[str, str] = field(default_factory=dict)
    data_source: bool = True
    assume: str | None = None
    warn: Mapping[str, Any] | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)
    live: bool = False
    version: int = 0
    shared: tuple[str, ...] = ()
    excludes: tuple[Mapping[str, Any], ...] = ()
    create: str = "PUT"
    rotates: bool = False
    ephemeral: Mapping[str, Any] | None = None

    def with_semantic(self, kind: str) -> Attribute | None:
        """The first top-level attribute compared in the given way."""
        return next((a for a in self.attributes.values() if a.semantic == kind), None)

    def wanted_states(self, value: Mapping[str, Any]) -> tuple[str, ...]:
        """The observed states that an object of this value should come to; empty where nothing is awaited."""
        wait = self.wait
        return tuple(wait["targets"].get(value.get(wait["follow"]), ())) if wait else ()

    def is_settled(self, value: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
        """Tell from the service's answer whether the object is as its value wants it."""
        status = answer.get("status") or {}
        state, seen, generation = (
            status.get("state"),
            status.get("observed_generation"),
            answer.get("generation"),
        )
        # "running" may still speak of the job of the version before.
        current = state != "running" or seen is None or generation is None or seen >= generation
        return current and state in self.wanted_states(value)

    def ill(self, answer: Mapping[str, Any]) -> tuple[str, str] | None:
        """State and cause of an object that exists and does not work, such as a store; None of any other."""
        warn = self.warn
        status = answer.get(warn["attribute"]) if warn else None
        if not warn or not isinstance(status, Mapping) or status.get("state") not in warn["states"]:
            return None
        error = status.get("error")
        detail = error.get("detail") if isinstance(error, Mapping) else None
        return status["state"], str(status.get("message") or detail or "no reason given")


@dataclass(frozen=True, slots=True)
class ProviderSchema:
    """Everything the provider offers."""

    provider: Mapping[str, Attribute]
    resources: Mapping[str, Resource]
    data_sources: Mapping[str, Resource]
    functions: Mapping[str, Mapping[str, Any]]
    ephemerals: Mapping[str, Resource] = field(default_factory=dict)


def _attribute(name: str, raw: Mapping[str, Any]) -> Attribute:
    return Attribute(
        name=name,
        rest=raw.get("rest", name),
        type=raw.get("type"),
        nesting=raw.get("nesting"),
        attributes={key: _attribute(key, value) for key, value in raw.get("attributes", {}).items()},
        mode=raw["mode"],
        description=raw.get("description", ""),
        default=raw.get("default"),
        has_default="default" in raw,
        enum=tuple(raw.get("enum", ())),
        exactly_one_of=tuple(raw.get("exactly_one_of", ())),
        **{
            key: raw[key]
            for key in (
                "path",
                "sensitive",
                "write_only",
                "replace",
                "volatile",
                "provider_only",
                "trigger",
                "semantic",
                "default_from",
                "template",
                "infer",
                "preview",
                "unmanaged",
                "kept",
                "pattern",
                "example",
            )
            if key in raw
        },
    )


def _resource(name: str, raw: Mapping[str, Any]) -> Resource:
    return Resource(
        name=name,
        description=raw.get("description", ""),
        path=raw["path"],
        key=tuple(raw["key"]),
        import_id=raw["import"],
        attributes={key: _attribute(key, value) for key, value in raw["attributes"].items()},
        exactly_one_of=tuple(tuple(group) for group in raw.get("exactly_one_of", ())),
        wait=raw.get("wait"),
        delete_query=raw.get("delete_query", {}),
        data_source=raw.get("data_source", True),
        assume=raw.get("assume"),
        warn=raw.get("warn"),
        constants=raw.get("constants", {}),
        live=raw.get("live", False),
        version=raw.get("version", 0),
        shared=tuple(raw.get("shared", ())),
        excludes=tuple(raw.get("excludes", ())),
        create=raw.get("create", "PUT"),
        rotates=raw.get("rotates", False),
        ephemeral=raw.get("ephemeral"),
    )


def parse(document: Mapping[str, Any]) -> ProviderSchema:
    """Read a ``provider.json`` document.

    Raises:
        ValueError: the document's format is not the one this code reads.
    """
    if document.get("format") != FORMAT:
        raise ValueError(f"provider.json has format {document.get('format')!r}; this provider reads {FORMAT}")
    resources = {name: _resource(name, raw) for name, raw in document["resources"].items()}
    return ProviderSchema(
        provider={name: _attribute(name, raw) for name, raw in document["provider"]["attributes"].items()},
        resources=resources,
        data_sources={name: as_data_source(r) for name, r in resources.items() if r.data_source},
        functions=document.get("functions", {}),
        ephemerals={name: as_ephemeral(r) for name, r in resources.items() if r.ephemeral is not None},
    )


@cache
def load() -> ProviderSchema:
    """The schema this package was built with."""
    text = files("leatstream_terraform").joinpath("data/provider.json").read_text(encoding="utf-8")
    return parse(json.loads(text))


def as_data_source(resource: Resource) -> Resource:
    """The data source of a resource: its key is given, all else is read; nothing provider-side."""

    def readable(attributes: Mapping[str, Attribute], key: tuple[str, ...]) -> dict[str, Attribute]:
        result = {}
        for name, item in attributes.items():
            if item.write_only or item.provider_only:
                continue
            children = readable(item.attributes, ())
            mode: Mode = "required" if name in key else "computed"
            result[name] = Attribute(
                name,
                item.rest,
                item.type,
                item.nesting,
                children,
                mode,
                item.description,
                path=item.path,
                sensitive=item.sensitive,
                template=item.template,
            )
        return result

    return Resource(
        resource.name,
        resource.description,
        resource.path,
        resource.key,
        resource.import_id,
        readable(resource.attributes, resource.key),
    )


def as_ephemeral(resource: Resource) -> Resource:
    """The ephemeral resource: its names may be left out, and nothing is there for an update."""
    differs = resource.ephemeral or {}
    defaults = differs.get("defaults", {})
    attributes = {}
    for name, item in resource.attributes.items():
        if name in _ROTATION:
            continue
        mode: Mode = item.mode
        text = item.description
        if name in resource.key:
            mode, text = "optional_computed", f"{text.rstrip('.')}; left out = a new one."
        elif name in defaults:
            mode = "optional_computed"
            text = f"{text.partition(';')[0].rstrip('.')}; default {defaults[name]}."
        text = differs.get("descriptions", {}).get(name, text)
        attributes[name] = replace(item, mode=mode, description=text, replace=False, trigger=False)
    return replace(resource, attributes=attributes, description=differs["description"])


def empty(attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    """An object with every attribute null."""
    return dict.fromkeys(attributes)


def complete(attributes: Mapping[str, Attribute], value: Any) -> Any:
    """Give an object every attribute of its schema (null where absent), nothing else, on all levels."""
    if not isinstance(value, dict):
        return value
    return {name: _complete_nested(item, value.get(name)) for name, item in attributes.items()}


def _complete_nested(item: Attribute, value: Any) -> Any:
    if item.nesting == "single":
        return complete(item.attributes, value)
    if item.nesting == "list" and isinstance(value, list):
        return [complete(item.attributes, element) for element in value]
    if item.nesting == "map" and isinstance(value, dict):
        return {key: complete(item.attributes, element) for key, element in value.items()}
    if item.nesting is None:
        return plain(item.type, value)
    return value


def plain(kind: Any, value: Any) -> Any:
    """Give a value the exact Python type of a cty type; raises ValueError when it cannot have it."""
    if value is None or value is UNKNOWN:
        return value
    if kind == "number":
        return number(value)
    if isinstance(kind, list) and kind[0] == "list" and isinstance(value, list):
        return [plain(kind[1], element) for element in value]
    if isinstance(kind, list) and kind[0] == "map" and isinstance(value, dict):
        return {key: plain(kind[1], element) for key, element in value.items()}
    return value


def walk(
    attributes: Mapping[str, Attribute], value: Any, path: Path = ()
) -> Iterator[tuple[Path, Attribute, Any]]:
    """Every attribute of an object with path and value, parents first; unknown parts are not entered."""
    if not isinstance(value, dict):
        return
    for name, item in attributes.items():
        inner = value.get(name)
        here = (*path, name)
        yield here, item, inner
        if item.nesting == "single":
            yield from walk(item.attributes, inner, here)
        elif item.nesting == "list" and isinstance(inner, list):
            for index, element in enumerate(inner):
                yield from walk(item.attributes, element, (*here, index))
        elif item.nesting == "map" and isinstance(inner, dict):
            for key, element in inner.items():
                yield from walk(item.attributes, element, (*here, Key(key)))
