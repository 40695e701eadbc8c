"""WITH of a Kafka store: logins by mechanism, and TLS unless it is switched off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leatstream.connectors.kafka.login import HASH_WORDS
from leatstream.connectors.kafka.settings import KafkaConfig
from leatstream.connectors.settings import Setting, settings_of
from leatstream.connectors.store_words import Settings, StoreWords, WithList

_HASH, _OFF, _VERIFY = "kafka.sasl.hash_function", "tls.disabled", "tls.verify_server_hostname"
_CERT, _KEY = "tls.client.cert_file", "tls.client.key_file"
# Mechanisms with a description of their own, and the member of sasl that holds it.
_PARTS = {"oauthbearer": "oauth", "aws_msk_iam": "aws"}
_LOGIN: Mapping[str, Setting] = {
    one.key: one for one in settings_of(KafkaConfig) if one.key and one.path[0] == "sasl" and one.key != _HASH
}
_FILES = tuple(
    one.key for one in settings_of(KafkaConfig) if one.key and one.path[0] == "tls" and one.key != _VERIFY
)


class KafkaWords(StoreWords):
    """A Kafka store's words."""

    def finish(self, given: WithList, found: Settings) -> Settings:
        """Addresses, the protocol, and what the mechanism needs."""
        uris = str(found.get("bootstrap_servers") or "")
        servers = [part.strip().removeprefix("kafka://") for part in uris.split(",") if part.strip()]
        sasl, tls = _sasl(given, found.get("sasl", {})), _tls(given, found.get("tls", {}))
        protocol = ("sasl_" if sasl else "") + ("plaintext" if tls is None else "ssl")
        config: Settings = {"bootstrap_servers": ",".join(servers), "security_protocol": protocol}
        return config | ({"sasl": sasl} if sasl else {}) | ({"tls": tls} if tls else {})

    def spelled(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """That TLS is off."""
        off = not str(config.get("security_protocol", "plaintext")).endswith("ssl")
        return {_OFF: True} if off else {}

    def keep(self, given: WithList, kept: dict[str, Any], present: Mapping[str, Any]) -> None:
        """Another mechanism has another login, and another certificate another key."""
        dropped: set[str] = set()
        if _HASH in given.given:
            mechanism = HASH_WORDS.get(str(given.raw(_HASH) or "").lower())
            dropped |= {key for key in _LOGIN if key not in _of(mechanism)}
        if given.flag(_OFF, False):
            dropped |= {*_FILES, _VERIFY}
        if _CERT in given.given:
            dropped.add(_KEY)
        for key in dropped & kept.keys():
            del kept[key]


def _of(mechanism: str | None) -> dict[str, bool]:
    """The properties that go with a mechanism, and whether it needs them."""
    if mechanism is None:
        return {}
    part = _PARTS.get(mechanism)
    if part is None:
        return {key: True for key, one in _LOGIN.items() if len(one.path) == 2}
    return {key: one.field.is_required() for key, one in _LOGIN.items() if one.path[1] == part}


def _wanted(key: str) -> str:
    """The words of the mechanisms that a property goes with."""
    *most, last = (word.upper() for word, mechanism in HASH_WORDS.items() if key in _of(mechanism))
    return f"{', '.join(most)} or {last}" if most else last


def _sasl(given: WithList, found: Settings) -> Settings | None:
    mechanism = found.get("mechanism") or None
    mine = _of(mechanism)
    unread = _HASH in given.given and mechanism is None and str(given.raw(_HASH)).lower() != "none"
    for key in _LOGIN:
        if key in given.given and key not in mine and not unread:
            given.wrong(key, f"{key!r} needs {_HASH!r} to be {_wanted(key)}.")
    for key, needed in mine.items():
        if needed and key not in given.given:
            detail = f"{_HASH!r} = {str(given.raw(_HASH)).upper()} needs {key!r}."
            given.faults.add("invalid-property", detail, **given.where(_HASH))
    if mechanism is None:
        return None
    part = _PARTS.get(mechanism)
    members = ("username", "password") if part is None else (part,)
    return {"mechanism": mechanism} | {name: found[name] for name in members if name in found}


def _tls(given: WithList, found: Settings) -> Settings | None:
    """TLS settings; None if it is off. It is on unless switched off, as in the reference product."""
    if not given.flag(_OFF, False):
        return {"verify_hostname": True} | found
    for key in _FILES:
        if key in given.given:
            given.wrong(key, f"{key!r} has no meaning with {_OFF!r} = TRUE.")
    return None
