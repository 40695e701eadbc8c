"""WITH of a Snowflake store: ``uris`` is the account's address."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from leatstream.connectors.snowflake.settings import SUFFIX
from leatstream.connectors.store_words import Settings, StoreWords, WithList

ACCOUNT_ID, REGION = "snowflake.account_id", "snowflake.cloud.region"
_KEY, _PASSPHRASE = "snowflake.client.key_file", "snowflake.client.key_passphrase"
_PASSWORD = "snowflake.password"  # noqa: S105 - a property's name
_SHAPE = "'uris' of a Snowflake store is one address: 'https://<account>.snowflakecomputing.com'."


class SnowflakeWords(StoreWords):
    """A Snowflake store's words."""

    def finish(self, given: WithList, found: Settings) -> Settings:
        """Account and address; the account's own address is what the client takes anyway."""
        host = _host(given)
        account = found.get("account") or (_account(host) if host else None)
        if account is None and not {"uris", ACCOUNT_ID} & given.given.keys():
            hint = f"Write {ACCOUNT_ID!r} = 'organization-account', or the address in 'uris'."
            given.faults.add("invalid-property", "A Snowflake store needs its account.", hint=hint)
        elif account is None and host is not None:
            given.wrong("uris", f"'uris' does not name the account: {host}.", f"Write {ACCOUNT_ID!r} too.")
        # In an update both may stand for what is stored, of which there is only one.
        if {_KEY, _PASSWORD} <= given.given.keys() and given.raw(_KEY) != given.raw(_PASSWORD):
            given.wrong(_PASSWORD, f"{_PASSWORD!r} has no meaning beside {_KEY!r}.", "Leave one of them out.")
        elif _PASSWORD in given.given and _KEY not in given.given:
            found["login"] = "password"
        own = host is not None and account is not None and _account(host) == _host_part(account)
        place = {"account": account, "host": None if own else host}
        return {key: value for key, value in (found | place).items() if value is not None}

    def spelled(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The address, where it is not the account's own."""
        host = config.get("host")
        return {"uris": host if "://" in host else f"https://{host}"} if host else {}

    def unused(self, config: Mapping[str, Any], stored: Collection[str]) -> Collection[str]:
        """The key beside a password that is logged in with, or the password beside a key.

        Args:
            config: the settings without secrets.
            stored: names of the store's secrets.
        """
        if config.get("login") == "password":
            return ("private_key", "private_key_passphrase")
        return ("password",) if "private_key" in stored else ()

    def keep(self, given: WithList, kept: dict[str, Any], present: Mapping[str, Any]) -> None:
        """Another address is another account, and another way to log in replaces the former one."""
        if "uris" in given.given:
            kept.pop(ACCOUNT_ID, None)
        if ACCOUNT_ID in given.given:
            kept.pop("uris", None)
        if _PASSWORD in given.given:
            kept.pop(_KEY, None)
        if _PASSWORD in given.given or _KEY in given.given:
            kept.pop(_PASSPHRASE, None)
        if _KEY in given.given:
            kept.pop(_PASSWORD, None)

    def settle(self, config: Settings, present: Mapping[str, Any], given: WithList) -> Settings:
        """What to log in with stays where the update does not say it."""
        if not {_KEY, _PASSWORD} & given.given.keys() and "login" in present:
            config["login"] = present["login"]
        return config


def _host(given: WithList) -> str | None:
    """Host and port in ``uris``; http:// stays, for a double of Snowflake on this machine."""
    text = given.text("uris")
    if text is None:
        return None
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError:
        given.wrong("uris", _SHAPE)
        return None
    more = parts.username is not None or parts.query or parts.fragment or parts.path not in ("", "/")
    if parts.scheme not in ("http", "https") or not parts.hostname or more:
        given.wrong("uris", _SHAPE)
        return None
    shown = parts.hostname if port is None or port == 443 else f"{parts.hostname}:{port}"
    return shown if parts.scheme == "https" else f"http://{shown}"


def _account(host: str) -> str | None:
    """The account that a host's name names."""
    return host.removesuffix(SUFFIX) if host.endswith(SUFFIX) else None


def _host_part(account: str) -> str:
    return account.replace("_", "-").lower()
