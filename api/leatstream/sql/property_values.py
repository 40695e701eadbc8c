"""Reading WITH values: typed, with a fault that points into the SQL text or, for REST, into the body."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from leatstream.errors import Faults, sentence
from leatstream.model.names import nearest, parse_name
from leatstream.model.registered import SecretName
from leatstream.sql.passes.columns import suggestion
from leatstream.sql.statements import Value

Plain = str | int | float | bool
Given = Mapping[str, Value | Plain]


class PropertyReader:
    """Reads one WITH list; what is wrong gathers in ``faults``.

    Values come from SQL (``Value``, with positions) or from a REST body (plain, located by JSON pointer).
    """

    def __init__(self, given: Given, what: str) -> None:
        self.given = {key.strip().lower(): value for key, value in given.items()}
        self.what = what
        self.faults = Faults()

    def raw(self, key: str) -> Plain | None:
        """The value as given, without where it stands."""
        value = self.given.get(key)
        return value.value if isinstance(value, Value) else value

    def where(self, key: str, *, of_key: bool = False) -> dict[str, Any]:
        """``position`` or ``pointer`` of a property, as keywords for a fault."""
        value = self.given.get(key)
        if isinstance(value, Value):
            return {"position": (value.key_position or value.position) if of_key else value.position}
        return {"pointer": "#/properties/" + key.replace("~", "~0").replace("/", "~1")}

    def wrong(self, key: str, detail: str, hint: str | None = None) -> None:
        """Note that a value is not legal. Values are not echoed: they may be secret.

        Args:
            key: of the property.
            detail: the message.
            hint: what to do.
        """
        self.faults.add("invalid-property", detail, hint=hint and sentence(hint), **self.where(key))

    def unbuilt(self, key: str, hint: str | None = None) -> None:
        """Note that a property is known but not built."""
        detail = f"The {self.what} property {key!r} is not supported."
        self.faults.add("unsupported", detail, hint=hint and sentence(hint), **self.where(key, of_key=True))

    def unknown(self, key: str, known: Collection[str]) -> None:
        """Note that there is no such property."""
        near = nearest(key, known)
        hint = f"Did you mean {near!r}?" if near is not None else f"Available: {', '.join(known)}."
        self.elsewhere(key, hint)

    def elsewhere(self, key: str, hint: str) -> None:
        """Note that a property does not belong here, and where it does."""
        detail = f"{key!r} is not a {self.what} property."
        self.faults.add("invalid-property", detail, hint=hint, **self.where(key, of_key=True))

    def text(self, key: str) -> str | None:
        """A non-empty string."""
        value = self.raw(key)
        if value is None:
            return None
        if isinstance(value, bool | int | float):
            self.wrong(key, f"{key!r} must be a string.")
            return None
        if not value.strip():
            self.wrong(key, f"{key!r} is empty.")
            return None
        return value

    def name(self, key: str) -> str | None:
        """A name of one part: in SQL ``'Demo'`` folds to demo, ``"Demo"`` does not; in REST it is exact."""
        given, text = self.given.get(key), self.text(key)
        if text is None or not isinstance(given, Value) or given.kind == "identifier":
            return text
        try:
            return parse_name(text)
        except ValueError as error:
            self.wrong(key, f"{key!r} must be a name: {error}.")
            return None

    def secret(self, key: str) -> str | SecretName | None:
        """A secret value: a text, or in double quotes the name of the secret that holds it."""
        given = self.given.get(key)
        if isinstance(given, Value) and given.kind == "identifier":
            return SecretName(str(given.value))
        return self.text(key)

    def choice(self, key: str, known: Collection[str]) -> str | None:
        """One of some words, in lower case."""
        value = self.raw(key)
        if value is None:
            return None
        word = str(value).lower()
        if word in known:
            return word
        self.wrong(key, f"{key!r} is {_either(known)}.", suggestion(word, known))
        return None

    def number(self, key: str, minimum: int = 1) -> int | None:
        """A whole number; REST and Terraform may send it as text."""
        value = self.raw(key)
        if value is None:
            return None
        text = str(value)
        if isinstance(value, bool | float) or not (text.isascii() and text.isdecimal() and len(text) < 10):
            self.wrong(key, f"{key!r} must be a whole number.")
            return None
        if int(text) < minimum:
            self.wrong(key, f"{key!r} must be at least {minimum}.")
            return None
        return int(text)

    def flag(self, key: str, default: bool) -> bool:
        """TRUE or FALSE."""
        value = self.raw(key)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        word = str(value).lower()
        if word not in ("true", "false"):
            self.wrong(key, f"{key!r} is TRUE or FALSE.")
            return default
        return word == "true"


def _either(words: Collection[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
