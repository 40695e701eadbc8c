"""Reads REST answers as Terraform values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from leatstream_terraform.codec import number
from leatstream_terraform.plan import same_text
from leatstream_terraform.schema import Attribute


def from_rest(
    attributes: Mapping[str, Attribute],
    answer: Mapping[str, Any],
    prior: Mapping[str, Any] | None,
    live: bool = False,
) -> dict[str, Any]:
    """Read a REST object as the value of a resource.

    Args:
        attributes: schema of the object.
        answer: JSON of the service.
        prior: value that Terraform holds: it decides between two spellings of one meaning (null and empty,
            ``bigint`` and ``BIGINT``) and keeps what the service never returns. None when there is none, as
            after an import.
        live: the answer holds more than was written; what ``prior`` does not name is left out.
    """
    known = prior is not None
    result = {}
    for name, item in attributes.items():
        raw, before = answer.get(item.rest), (prior or {}).get(name)
        if live and known and item.mode == "optional" and not item.provider_only:
            raw = _named(raw, before)
        result[name] = _read(item, raw, before, known, live)
    keep_implied(attributes, result, prior)
    return result


def keep_implied(attributes: Mapping[str, Attribute], value: dict[str, Any], prior: Any) -> None:
    """Keep, in place, what ``prior`` says of the columns where the primary key says it already.

    A key column is never null, whatever is written: another word for that is no change, least of all one
    that a table is dropped for.
    """
    if not isinstance(prior, dict):
        return
    keys = value.get("primary_key")
    for name, item in attributes.items():
        now, before = value.get(name), prior.get(name)
        if item.nesting == "single" and isinstance(now, dict):
            keep_implied(item.attributes, now, before)
        said = [one.name for one in item.attributes.values() if one.semantic == "unless_key"]
        if said and isinstance(keys, list) and isinstance(now, list) and isinstance(before, list):
            for one, old in zip(now, before, strict=False):
                if isinstance(one, dict) and one["name"] in keys and one["name"] == old["name"]:
                    one.update({word: old[word] for word in said if old[word] is not None})


def _named(raw: Any, prior: Any) -> Any:
    """What is left of a live value when only the keys that Terraform holds are looked at."""
    if prior is None:
        return None
    return {key: raw[key] for key in prior if key in raw} if isinstance(raw, dict) and prior else raw


def _read(item: Attribute, raw: Any, prior: Any, known: bool, live: bool) -> Any:
    if item.write_only:
        return None
    if (item.provider_only and known) or (item.kept and raw is None):
        return prior
    if item.path and raw is None:
        return prior
    if raw is None or (_is_empty(raw) and not item.computed and prior is None):
        if item.has_default:
            return item.default
        return prior if _is_empty(prior) and not item.computed else None
    value = _convert(item, raw, prior, live)
    if prior is not None and same_text(item, value, prior):
        return prior
    return value


def _is_empty(value: Any) -> bool:
    # Not False: where it is set, the default that null stands for may well be true, as of verify_hostname.
    return value in ({}, [], "")


def _convert(item: Attribute, raw: Any, prior: Any, live: bool) -> Any:
    if item.nesting == "single":
        return from_rest(item.attributes, raw, prior, live) if isinstance(raw, dict) else None
    if item.nesting == "list":
        before = prior if isinstance(prior, list) else []
        return [
            from_rest(item.attributes, one, before[at] if at < len(before) else None, live)
            for at, one in enumerate(raw)
        ]
    if item.nesting == "map":
        old = prior if isinstance(prior, dict) else {}
        return {key: from_rest(item.attributes, one, old.get(key), live) for key, one in raw.items()}
    return _plain(item.type, raw)


def _plain(kind: Any, raw: Any) -> Any:
    if raw is None:
        return None
    if kind == "string":
        return raw if isinstance(raw, str) else json.dumps(raw, sort_keys=True, ensure_ascii=False)
    if kind == "number":
        return number(raw)
    if kind == "bool":
        return bool(raw)
    if kind[0] == "list":
        return [_plain(kind[1], one) for one in raw]
    return {key: _plain(kind[1], one) for key, one in raw.items()}
