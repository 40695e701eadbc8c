"""WITH of CREATE and UPDATE of secrets, schema registries and descriptor sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from leatstream.model.registered import SecretName
from leatstream.sql.concealing import TELLING
from leatstream.sql.property_values import Given, PropertyReader

SECRET_KEYS = ("type", "description", "secret_string", "reference")
_KINDS = ("confluent", "confluent_cloud", "apicurio")
_USERS = {
    "confluent": "confluent.username",
    "confluent_cloud": "confluent_cloud.key",
    "apicurio": "apicurio.username",
}
_PASSWORDS = {
    "confluent": "confluent.password",
    "confluent_cloud": "confluent_cloud.secret",
    "apicurio": "apicurio.password",
}
_CA = "tls.ca_cert_file"
REGISTRY_KEYS = ("type", "uris", "description", _CA, *_USERS.values(), *_PASSWORDS.values())
_CLIENT_CERTIFICATE = ("tls.client.cert_file", "tls.client.key_file")


def username_key(kind: str) -> str:
    """The property that holds the user of a schema registry of this kind."""
    return _USERS[kind]


def password_key(kind: str) -> str:
    """The property that holds the password of a schema registry of this kind."""
    return _PASSWORDS[kind]


@dataclass(frozen=True, slots=True)
class SecretProperties:
    """What is said of a secret; None where nothing is."""

    value: str | None
    comment: str | None
    notes: Mapping[str, str]
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class RegistryProperties:
    """What is said of a schema registry; None where nothing is."""

    kind: str | None
    uris: str | None
    username: str | None
    password: str | SecretName | None
    comment: str | None
    ca_certificate: str | None = None


def read_secret_properties(given: Given, *, update: bool = False) -> SecretProperties:
    """Read the WITH list of CREATE SECRET or UPDATE SECRET; other keys than the known ones are notes.

    Raises:
        RequestError: invalid-property with every fault; values are never echoed.
    """
    reader = PropertyReader(given, "secret")
    both = {"secret_string", "reference"} & set(reader.given)
    if not update and not both:
        hint = "Write 'secret_string' = '…', or 'reference' = 'secret://…'."
        reader.faults.add("invalid-property", "A secret needs 'secret_string' or 'reference'.", hint=hint)
    if len(both) == 2:
        reader.wrong("reference", "A secret has 'secret_string' or 'reference', not both.")
    word = reader.choice("type", ("generic_string",))
    if word is None and not update and "type" not in reader.given:
        hint = "Write 'type' = generic_string."
        reader.faults.add("invalid-property", "A secret needs 'type'.", hint=hint)
    notes: dict[str, str] = {}
    for key in reader.given:
        if key in SECRET_KEYS:
            continue
        # Notes are shown, so a misspelt 'secret_string' must never become one.
        if get_close_matches(key, SECRET_KEYS, n=1, cutoff=0.6):
            reader.unknown(key, SECRET_KEYS)
        elif any(word in key for word in TELLING):
            hint = "The value that nobody may read stands in 'secret_string'."
            reader.wrong(key, f"{key!r} would be shown to everyone: it is a note beside the secret.", hint)
        else:
            notes[key] = str(reader.raw(key))
    value, comment = reader.text("secret_string"), reader.text("description")
    reference = reader.text("reference")
    reader.faults.raise_if_any()
    return SecretProperties(value, comment, notes, reference)


def read_registry_properties(given: Given, kind: str | None = None) -> RegistryProperties:
    """Read the WITH list of CREATE SCHEMA_REGISTRY, or of UPDATE with the ``kind`` that the registry has.

    Raises:
        RequestError: invalid-property or unsupported with every fault; values are never echoed.
    """
    reader = PropertyReader(given, "schema registry")
    for key in reader.given:
        if key in _CLIENT_CERTIFICATE:
            reader.unbuilt(key, "Client certificates are not built yet.")
        elif key not in REGISTRY_KEYS:
            reader.unknown(key, REGISTRY_KEYS)
    word = reader.choice("type", _KINDS)
    if kind is not None and word not in (None, kind):
        reader.wrong("type", "A schema registry's 'type' cannot change.", "Create another one.")
    chosen = kind or word
    for key, needed in (("type", chosen), ("uris", reader.text("uris"))):
        if kind is None and needed is None and key not in reader.given:
            reader.faults.add("invalid-property", f"A schema registry needs {key!r}.")
    for other in _KINDS:
        for key in (_USERS[other], _PASSWORDS[other]):
            if chosen is not None and other != chosen and key in reader.given:
                reader.wrong(key, f"{key!r} belongs to registries of 'type' = {other.upper()}.")
    user, password = _USERS.get(chosen or "", ""), _PASSWORDS.get(chosen or "", "")
    read = RegistryProperties(
        kind=chosen,
        uris=reader.text("uris"),
        username=reader.text(user),
        password=reader.secret(password),
        comment=reader.text("description"),
        ca_certificate=reader.text(_CA),
    )
    if read.ca_certificate is not None and "-----BEGIN" not in read.ca_certificate:
        hint = "Give the PEM text itself; the server reads no files."
        reader.wrong(_CA, f"{_CA!r} is not a PEM text.", hint)
    reader.faults.raise_if_any()
    return read


def read_descriptor_file(given: Given) -> tuple[str, str | None]:
    """File name (without @) and description of CREATE DESCRIPTOR_SOURCE.

    Raises:
        RequestError: invalid-property with every fault.
    """
    reader = PropertyReader(given, "descriptor source")
    for key in reader.given:
        if key not in ("file", "description"):
            reader.unknown(key, ("file", "description"))
    name = reader.text("file")
    if "file" not in reader.given:
        reader.faults.add("invalid-property", "A descriptor source needs 'file'.", hint="'file' = '@x.desc'")
    elif name is not None and not name.startswith("@"):
        reader.wrong("file", "'file' is the name of a file that is sent along.", "Write 'file' = '@x.desc'.")
    comment = reader.text("description")
    reader.faults.raise_if_any()
    return (name or "@")[1:], comment
