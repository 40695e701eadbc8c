"""References to values in secret stores outside the catalog: ``secret://vault/kv/leat/kafka#password``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

_FORM = re.compile(r"secret://([a-z0-9-]+)/([^?#]+)(?:\?([^#]*))?(?:#(.+))?\Z")
_LENGTH = 1000
_PATHS = {
    "env": (
        re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z"),
        "the name of a variable, such as secret://env/KAFKA_PASSWORD",
    ),
    "file": (re.compile(r"[^/]+(/[^/]+)*\Z"), "the path of a file, such as secret://file/run/secrets/kafka"),
    "vault": (
        re.compile(r"[^/]+(/[^/]+)+\Z"),
        "a mount, a path and a key, such as secret://vault/kv/leat/kafka#password",
    ),
    "aws-sm": (
        re.compile(r"[A-Za-z0-9/_+=.@!:-]+\Z"),
        "the name or ARN of a secret, such as secret://aws-sm/leat/kafka#password",
    ),
    "k8s": (
        re.compile(r"[a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9.-]*\Z"),
        "a namespace, the name of a Secret and a key, such as secret://k8s/streams/kafka#password",
    ),
}
_WITH_KEY = ("vault", "k8s")
PROVIDERS = tuple(_PATHS)


@dataclass(frozen=True, slots=True)
class OutsideReference:
    """Where a value is kept outside the catalog.

    Attributes:
        text: as the user wrote it.
        provider: one of ``PROVIDERS``.
        path: name of the variable, absolute path of the file, or path in the secret store.
        key: of the value, where the secret has several; of JSON a member.
        region: of AWS, where it is said.
    """

    text: str
    provider: str
    path: str
    key: str | None = None
    region: str | None = None

    @staticmethod
    def read(text: str) -> OutsideReference:
        """The reference that a text is; ValueError with a sentence otherwise."""
        found = _FORM.match(text)
        if found is None or len(text) > _LENGTH or not text.isprintable():
            raise ValueError("A reference is written secret://PROVIDER/PATH#KEY, such as secret://env/NAME.")
        provider, path, query, key = found[1], unquote(found[2]), found[3], found[4]
        if provider not in _PATHS:
            raise ValueError(f"The provider of a reference must be one of {', '.join(PROVIDERS)}.")
        form, example = _PATHS[provider]
        parts = path.split("/")
        if not form.match(path) or not path.isprintable() or "." in parts or ".." in parts:
            raise ValueError(f"The reference does not name {example}.")
        if provider in _WITH_KEY and key is None:
            raise ValueError(f"The reference names no key: it names {example}.")
        options = dict(parse_qsl(query or "", keep_blank_values=True))
        region = options.pop("region", None) if provider == "aws-sm" else None
        if options or (query is not None and region is None):
            raise ValueError("The only option of a reference is ?region=, of the provider aws-sm.")
        place = f"/{path}" if provider == "file" else path
        return OutsideReference(text, provider, place, unquote(key) if key else None, region)
