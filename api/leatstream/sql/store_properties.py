"""WITH of CREATE STORE and UPDATE STORE: SQL's properties to the typed settings that REST and Terraform use.

One reader for every kind. Marks on a kind's settings say which property holds a setting, and which settings
are secrets or choices (``connectors/settings.py``). The kind's ``StoreWords`` read what is not one property
for one setting.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import PLANNED, connector_classes
from leatstream.connectors.settings import Needs, Secret, Setting, Sql, settings_of
from leatstream.errors import RequestError, sentence
from leatstream.model.registered import SecretName
from leatstream.sql.property_values import Given, PropertyReader

_REGISTRY = "schema_registry.name"
# Stands for a secret that stays, and passes for a PEM text.
_KEPT = "-----BEGIN kept"


def read_store_properties(given: Given) -> tuple[str, dict[str, Any]]:
    """Read the WITH list of CREATE STORE.

    Returns:
        the store kind and its settings: for kinds that are built shaped as in REST (``bootstrap_servers``,
        ``sasl {mechanism, username, password}``, …; ``region``, …), for other kinds the properties as written
        without ``type``, so that the service can refuse the kind by name.

    Raises:
        RequestError: invalid-property or unsupported, with every fault found; values are never echoed.
    """
    reader = PropertyReader(given, "store")
    if "type" not in reader.given:
        reader.faults.add("invalid-property", "A store needs 'type'.", hint="Write 'type' = KAFKA.")
    kinds = {word: kind for kind, found in connector_classes().items() for word in found.words.types}
    word = reader.choice("type", (*kinds, *PLANNED))
    kind = kinds.get(word, word) if word else None
    config: dict[str, Any] = {}
    connector = connector_classes().get(kind or "")
    if connector is not None:
        config = _read(reader, connector)
    elif kind is not None:
        config = {key: reader.raw(key) for key in reader.given if key not in ("type", _REGISTRY)}
    reader.faults.raise_if_any()
    return kind or "", config


def read_store_registry(given: Given) -> str | None:
    """The schema registry that CREATE STORE or UPDATE STORE names.

    Raises:
        RequestError: invalid-property, it is no name.
    """
    reader = PropertyReader(given, "store")
    name = reader.name(_REGISTRY)
    reader.faults.raise_if_any()
    return name


def read_store_update(
    given: Given, kind: str, present: Mapping[str, Any], named: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Read the WITH list of UPDATE STORE: what it does not name stays.

    Args:
        given: the list.
        kind: of the store.
        present: its settings without secrets.
        named: dotted path to the secret that holds the value, where the store names one.

    Returns:
        the settings after the change; a secret that stays has the value None, or its name.

    Raises:
        RequestError: invalid-property or unsupported, with every fault found; values are never echoed.
    """
    connector = connector_classes().get(kind)
    if connector is None:
        raise RequestError("unsupported", f"UPDATE STORE is not built for stores of kind {kind}.")
    reader = PropertyReader(given, "store")
    if "type" in reader.given:
        reader.wrong("type", "A store's 'type' cannot change.", "Create another store.")
        reader.given.pop("type")
    update = PropertyReader(reader.given, "store")
    update.faults = reader.faults
    gone = {*reader.given, *_of_others(connector, reader)}
    kept = {k: v for k, v in _spelled(connector, present).items() if k not in gone}
    connector.words.keep(update, kept, present)
    reader.given |= kept
    config = connector.words.settle(_read(reader, connector), present, update)
    reader.faults.raise_if_any()
    for setting in _settings(connector):
        if setting.key in kept and setting.find(Secret) is not None:
            _keep_secret(config, setting, (named or {}).get(setting.dotted))
    return config


def known_properties(connector: type[Connector]) -> tuple[str, ...]:
    """The properties that CREATE STORE takes for a kind."""
    return ("type", _REGISTRY, *connector.words.more, *(str(one.key) for one in _settings(connector)))


def _settings(connector: type[Connector]) -> tuple[Setting, ...]:
    return tuple(one for one in settings_of(connector.Config) if one.key is not None)


def _read(reader: PropertyReader, connector: type[Connector]) -> dict[str, Any]:
    """Settings, shaped as in REST; faults gather in the reader."""
    words, settings = connector.words, _settings(connector)
    keys = {one.dotted: str(one.key) for one in settings}
    known = known_properties(connector)
    for key in reader.given:
        if key in words.unsupported:
            reader.unbuilt(key, words.unsupported[key])
        elif key not in known:
            reader.unknown(key, known)
    config: dict[str, Any] = {}
    for setting in settings:
        _check(reader, setting, keys, words.title)
        value = _value(reader, setting)
        if value is not None:
            place = config
            for part in setting.path[:-1]:
                place = place.setdefault(part, {})
            place[setting.path[-1]] = value
    found = words.finish(reader, config)
    if not reader.faults.items:
        _check_values(reader, connector, found)
    return found


def _check_values(reader: PropertyReader, connector: type[Connector], config: Mapping[str, Any]) -> None:
    """Note what a setting may not be at its property; what settings say together is for the service."""
    keys = {one.path: str(one.key) for one in _settings(connector)}
    judged = _without_names(config)
    try:
        connector.Config.model_validate(judged)
    except ValidationError as error:
        for item in error.errors(include_input=False, include_url=False, include_context=False):
            path = tuple(str(part) for part in item["loc"])
            # A setting that no property holds alone is a part of the address.
            key = keys.get(path, "uris")
            if key in reader.given and _value_at(judged, path):
                reader.wrong(key, sentence(f"{key!r}: {item['msg'].removeprefix('Value error, ')}"))


def _value_at(config: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Whether a setting has a value that is judged: not one of its parts, nor one that is missing."""
    place: Any = config
    for part in path:
        place = place.get(part) if isinstance(place, Mapping) else None
    return not isinstance(place, Mapping) and place is not None


def _without_names(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without secrets that are named or stay: their values are not known here."""
    return {
        key: _without_names(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if not isinstance(value, SecretName) and value != _KEPT
    }


def _check(reader: PropertyReader, setting: Setting, keys: Mapping[str, str], title: str) -> None:
    """Note that a property is missing, or the other one that it needs."""
    key, sql, needs = str(setting.key), setting.find(Sql), setting.find(Needs)
    if sql is not None and sql.example is not None and key not in reader.given:
        detail = f"{title[0].upper()}{title[1:]} needs {key!r}."
        reader.faults.add("invalid-property", detail, hint=f"Write {sql.example}.")
    if needs is not None and key in reader.given:
        other = keys.get(".".join((*setting.path[:-1], needs.other)))
        if other is not None and other not in reader.given:
            reader.wrong(key, f"{key!r} needs {other!r}.")


def _value(reader: PropertyReader, setting: Setting) -> Any:
    """The value of a setting; None where it is not given, or wrong."""
    key, sql, choices = str(setting.key), setting.find(Sql), setting.choices
    if key not in reader.given:
        return None
    if choices is not None:
        word = reader.choice(key, tuple(choices))
        return choices[word] if word is not None else None
    if setting.value_type is bool:
        return reader.flag(key, bool(setting.field.default))
    if setting.value_type is int:
        return reader.number(key)
    text = reader.secret(key) if setting.find(Secret) else reader.text(key)
    if sql is not None and sql.pem and isinstance(text, str) and "-----BEGIN" not in text:
        reader.wrong(
            key, f"{key!r} is not a PEM text.", "Give the PEM text itself; the server reads no files."
        )
        return None
    return (
        _pairs(reader, key, str(text)) if text is not None and setting.value_type == dict[str, str] else text
    )


def _pairs(reader: PropertyReader, key: str, text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        reader.wrong(key, f"{key!r} is name=value, several joined by commas.")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _spelled(connector: type[Connector], config: Mapping[str, Any]) -> dict[str, Any]:
    """A store's settings as SQL's properties; a stored secret stands as ``_KEPT``."""
    found: dict[str, Any] = {}
    for setting in _settings(connector):
        place: Any = config
        for part in setting.path[:-1]:
            place = place.get(part) or {}
        secret, value = setting.find(Secret), place.get(setting.path[-1])
        if secret is not None:
            value = _KEPT if secret.of is not None and place.get(secret.of) is not None else None
        elif setting.choices is not None:
            value = {v: word for word, v in setting.choices.items()}.get(value)
        elif isinstance(value, Mapping):
            value = ",".join(f"{name}={one}" for name, one in value.items()) or None
        if value is not None:
            found[str(setting.key)] = value
    return found | connector.words.spelled(config)


def written_store(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a ``CREATE STORE`` that makes a store of these settings, secrets left out.

    Args:
        kind: of the store.
        config: its settings without secrets.

    Returns:
        property to value, ``type`` first.
    """
    connector = connector_classes()[kind]
    secrets = {str(one.key) for one in _settings(connector) if one.find(Secret) is not None}
    defaults = {str(one.key): one.field.default for one in _settings(connector)}
    plain = {
        key: value
        for key, value in _spelled(connector, config).items()
        if key not in secrets and value != defaults.get(key)
    }
    return {"type": connector.words.types[0], **plain, **connector.words.written(config)}


def secret_properties(kind: str) -> dict[str, str]:
    """Dotted path of each secret of a kind, to the SQL property that holds it."""
    settings = _settings(connector_classes()[kind])
    return {one.dotted: str(one.key) for one in settings if one.find(Secret) is not None}


def unused_secrets(kind: str, config: Mapping[str, Any], stored: Collection[str]) -> frozenset[str]:
    """Those of a store's secrets that it keeps and does not use, which SQL has no words for.

    Args:
        kind: of the store.
        config: its settings without secrets.
        stored: dotted paths of its secrets.
    """
    return frozenset(connector_classes()[kind].words.unused(config, stored)) & frozenset(stored)


def _of_others(connector: type[Connector], reader: PropertyReader) -> list[str]:
    """Secrets that cannot stay, as the setting that they go with is another one now."""
    keys = {one.dotted: str(one.key) for one in _settings(connector)}
    found: list[str] = []
    for setting in _settings(connector):
        secret, needs = setting.find(Secret), setting.find(Needs)
        if secret is not None and needs is not None and needs.other == secret.of:
            owner = keys[".".join((*setting.path[:-1], needs.other))]
            found += [str(setting.key)] if owner in reader.given else []
    return found


def _keep_secret(config: dict[str, Any], setting: Setting, name: str | None) -> None:
    place: Any = config
    for part in setting.path[:-1]:
        place = place.get(part, {})
    if setting.path[-1] in place:
        place[setting.path[-1]] = None if name is None else SecretName(name)
