"""The plan rules, pure: what Terraform shows that an object will look like.

Rules (measured against Terraform 1.11): a configured value is planned as written, or as the prior value when
the two mean the same; a computed value without configuration is its default, else the prior value, else
unknown; a write-only value is always null; every value that was known in a plan must come out of apply
unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from leatstream_terraform.codec import UNKNOWN, Path, has_unknown
from leatstream_terraform.names import fill_template, quote_ident
from leatstream_terraform.schema import Attribute, Resource, walk

_TYPE_PART = re.compile(r'"(?:[^"]|"")*"|`[^`]*`|\w+|\s+|.')
_ALIASES = {"INT": "INTEGER", "STRING": "VARCHAR", "BOOL": "BOOLEAN", "REAL": "FLOAT", "NUMERIC": "DECIMAL"}

#: Compares a configured value with the prior one by meaning: (attribute, configured, prior) -> equal.
Same = Callable[[Attribute, Any, Any], bool]


def same_text(item: Attribute, configured: Any, prior: Any) -> bool:
    """The comparisons that need no service: equal, or two spellings of one word or SQL type."""
    if configured == prior:
        return True
    spell = _SPELLINGS.get(item.semantic or "")
    if spell is None or not isinstance(configured, str) or not isinstance(prior, str):
        return False
    return spell(configured) == spell(prior)


def _type(text: str) -> str:
    """A SQL type in one spelling; field names that need their quotes keep their case."""
    return " ".join(_type_part(part) for part in _TYPE_PART.findall(text) if part.strip() and part != ":")


def _type_part(part: str) -> str:
    if part[0] not in '"`':
        return _ALIASES.get(part.upper(), part.upper())
    name = part[1:-1].replace(part[0] * 2, part[0])
    # Quoted for nothing: SQL folds names without quotes to lower case.
    return name.upper() if quote_ident(name) == name and name.upper() not in _ALIASES else f'"{name}"'


#: By the hint ``semantic``: how to write a value so that equal ones are equal.
_SPELLINGS: dict[str, Callable[[str], str]] = {"type": _type, "word": lambda text: text.strip().casefold()}


def propose(
    attributes: Mapping[str, Attribute], config: Any, prior: Any, same: Same = same_text
) -> dict[str, Any]:
    """Plan an object from its configuration and prior state.

    Args:
        attributes: schema of the object.
        config: its configuration.
        prior: its state before; None when it is to be created.
        same: whether a configured value means what the prior one means.
    """
    return {
        name: _propose(
            item,
            config.get(name),
            prior.get(name) if isinstance(prior, dict) else None,
            isinstance(prior, dict),
            same,
        )
        for name, item in attributes.items()
    }


def _propose(item: Attribute, config: Any, prior: Any, exists: bool, same: Same) -> Any:
    if item.write_only:
        return None
    if config is UNKNOWN:
        return UNKNOWN
    if config is None:
        if not item.computed:
            return None
        if item.has_default:
            return item.default
        return prior if exists else UNKNOWN
    if item.nesting == "single":
        return propose(item.attributes, config, prior, same)
    if item.nesting == "list":
        before = prior if isinstance(prior, list) else []
        return [
            propose(item.attributes, one, before[at] if at < len(before) else None, same)
            if isinstance(one, dict)
            else one
            for at, one in enumerate(config)
        ]
    if item.nesting == "map":
        old = prior if isinstance(prior, dict) else {}
        return {
            key: propose(item.attributes, one, old.get(key), same) if isinstance(one, dict) else one
            for key, one in config.items()
        }
    return prior if prior is not None and same(item, config, prior) else config


def body(attributes: Mapping[str, Attribute], value: Any, config: Any = None) -> dict[str, Any]:
    """The REST body of an object: what the user may give and the service takes, nulls left out.

    Args:
        attributes: schema of the object.
        value: planned or prior value.
        config: configuration, the source of write-only values; None leaves these and provider-side ones out.
    """
    result: dict[str, Any] = {}
    for name, item in attributes.items():
        if item.path or not item.configurable:
            continue
        # Such a value is no reason to write, but is sent with one, so that an import finds it again.
        if item.provider_only and (config is None or item.trigger or item.write_only):
            continue
        if item.unmanaged and isinstance(config, dict) and config.get(name) is None:
            continue
        source = config.get(name) if item.write_only and isinstance(config, dict) else value.get(name)
        if source is None:
            continue
        inner = config.get(name) if isinstance(config, dict) else None
        result[item.rest] = _body_value(item, source, inner)
    return result


def _body_value(item: Attribute, value: Any, config: Any) -> Any:
    if value is UNKNOWN or item.nesting is None:
        return value
    if item.nesting == "single":
        return body(item.attributes, value, config)
    if item.nesting == "list":
        inner = config if isinstance(config, list) else []
        return [_element(item, v, inner[i] if i < len(inner) else None) for i, v in enumerate(value)]
    given = config if isinstance(config, dict) else {}
    return {key: _element(item, one, given.get(key)) for key, one in value.items()}


def _element(item: Attribute, value: Any, config: Any) -> Any:
    """One of a list or map; unknown until apply, or null, of which the service says that it may not be so."""
    return body(item.attributes, value, config) if isinstance(value, dict) else value


def needs_write(resource: Resource, prior: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
    """Return whether the service must be written to, or only provider-side values differ.

    A trigger that appears after an import counts too: nothing shows whether it came with another secret,
    and the service takes an equal one for no change.

    Args:
        resource: type of the object.
        prior: its value before.
        planned: its planned value.
    """
    if body(resource.attributes, prior) != body(resource.attributes, planned):
        return True
    before = _triggers(resource.attributes, prior)
    after = _triggers(resource.attributes, planned)
    return any(before.get(path) != value for path, value in after.items())


def _triggers(attributes: Mapping[str, Attribute], value: Any) -> dict[Path, Any]:
    return {path: inner for path, item, inner in walk(attributes, value) if item.trigger}


def replacements(resource: Resource, prior: Mapping[str, Any], planned: Mapping[str, Any]) -> list[Path]:
    """Paths whose change needs a new object; to write a default out, or leave it out, is no change.

    Args:
        resource: type of the object.
        prior: its value before.
        planned: its planned value.
    """

    def meant(item: Attribute, value: Any, whole: Mapping[str, Any]) -> Any:
        return whole.get(item.default_from) if value is None and item.default_from else value

    before = {path: meant(item, value, prior) for path, item, value in walk(resource.attributes, prior)}
    return [
        path
        for path, item, value in walk(resource.attributes, planned)
        if item.replace
        and path in before
        and meant(item, value, planned) != before[path]
        # Nothing shows what an imported object was made with.
        and not (item.provider_only and before[path] is None)
        # What the service will tell may well be the same; what a configuration will tell may well differ.
        and (item.configurable or value is not UNKNOWN)
    ]


def templates(resource: Resource, planned: dict[str, Any]) -> None:
    """Fill in the values that are computed from others, in place."""
    for name, item in resource.attributes.items():
        if item.template:
            planned[name] = fill_template(item.template, planned)


def forget(
    resource: Resource, planned: dict[str, Any], inferred: bool, config: Mapping[str, Any] | None = None
) -> None:
    """Make unknown, in place, what a write changes: volatile values and, with the SQL, inferred ones.

    Args:
        resource: type of the object.
        planned: its planned value.
        inferred: whether the SQL changes.
        config: its configuration; what it leaves to others may change until the apply.
    """
    for name in resource.shared:
        if config is not None and config.get(name) is None:
            planned[name] = UNKNOWN
    for name, item in resource.attributes.items():
        if item.mode == "computed" and (item.volatile or (inferred and item.infer)):
            planned[name] = UNKNOWN


def settle(planned: Any, actual: Any, path: Path = ()) -> tuple[Any, list[tuple[Path, Any, Any]]]:
    """Merge what was planned with what the service answered.

    What was known in the plan stays, as Terraform demands; what was unknown is taken from the answer.

    Returns:
        The new state, and (path, planned, actual) wherever the service answered something else than planned.
    """
    if planned is UNKNOWN:
        return actual, []
    if isinstance(planned, dict) and isinstance(actual, dict) and planned.keys() == actual.keys():
        merged, changes = {}, []
        for key, value in planned.items():
            merged[key], more = settle(value, actual[key], (*path, key))
            changes += more
        return merged, changes
    if isinstance(planned, list) and isinstance(actual, list) and len(planned) == len(actual):
        pairs = [
            settle(one, two, (*path, at)) for at, (one, two) in enumerate(zip(planned, actual, strict=True))
        ]
        return [value for value, _ in pairs], [change for _, more in pairs for change in more]
    if planned == actual:
        return planned, []
    return without_unknown(planned), [(path, planned, actual)]


def without_unknown(value: Any) -> Any:
    """The value with every unknown part made null, so that it may be stored."""
    if not has_unknown(value):
        return value
    if isinstance(value, dict):
        return {key: without_unknown(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_unknown(one) for one in value]
    return None
