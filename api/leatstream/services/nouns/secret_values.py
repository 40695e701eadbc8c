"""Secret values of an object: spelt out and then its own, or those of a secret that it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leatstream.errors import Faults, InternalError
from leatstream.model.access import Privilege
from leatstream.model.names import quote
from leatstream.model.registered import Secret, SecretName
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment
from leatstream.services.environment.desk import desk_of

SecretValue = str | SecretName | None  # None keeps the value that is stored
_STAND_IN = "x" * 40  # for a value outside the catalog that was not read before the transaction


@dataclass(frozen=True, slots=True)
class Held:
    """What the catalog has of a value: sealed, or where it is outside.

    Attributes:
        reference: of the value.
        envelope: the sealed value; empty if it is outside.
        outside: reference to a secret store; then nothing is sealed.
    """

    reference: str
    envelope: bytes = b""
    outside: str | None = None


def held(unit: UnitOfWork, reference: str) -> Held | None:
    """What the catalog has of a value, if anything; users of an object need not see the secrets behind it.

    Args:
        unit: an open unit of work.
        reference: of the value.
    """
    envelope = unit.secrets.find(reference)
    if envelope is not None:
        return Held(reference, envelope)
    object_id = reference.removeprefix("secret://catalog/").partition("/")[0]
    secret = unit.unfiltered.named_secrets.find_by_id(object_id)
    return Held(reference, outside=secret.outside) if secret is not None and secret.outside else None


def opened(env: Environment, found: Held, *, fresh: bool = False) -> str:
    """The value; one outside is read there, so that no transaction may be open.

    Args:
        env: the environment.
        found: what the catalog has of it.
        fresh: whether a value outside is read again in any case.

    Raises:
        InternalError: secret-unreadable.
        SecretStoreError: the secret store does not give it.
    """
    if found.outside is not None:
        return env.outside.value(found.outside, fresh=fresh)
    return env.secrets.open(found.reference, found.envelope)


def look_ahead(env: Environment, values: Iterable[SecretValue]) -> None:
    """Read values outside the catalog before a transaction begins, as transactions wait for no secret store.

    Args:
        env: the environment.
        values: that are to be settled.

    Raises:
        SecretStoreError: the secret store does not give one.
    """
    names = {value.name for value in values if isinstance(value, SecretName)}
    if not names:
        return
    with env.open_unit(write=False) as unit:
        found = [secret.outside for name in sorted(names) if (secret := _usable(unit, name)) is not None]
    for outside in found:
        if outside is not None:
            env.outside.value(outside)


@dataclass(frozen=True, slots=True)
class SettledSecrets:
    """What an object's secrets come to.

    Attributes:
        known: field path to value in force.
        own: paths whose value is the object's own.
        new: path to own value that is to be sealed.
        names: path to the secret that holds the value.
        shared: path to that secret's reference.
        changed: whether a value differs from what is stored.
    """

    known: Mapping[str, str]
    own: frozenset[str]
    new: Mapping[str, str]
    names: Mapping[str, str]
    shared: Mapping[str, str]
    changed: bool

    def references(self, object_id: str) -> dict[str, str]:
        """Field path to reference, for the object of this id."""
        found = {path: own_reference(object_id, path) for path in sorted(self.own)}
        return found | dict(self.shared)

    def store(self, env: Environment, unit: UnitOfWork, object_id: str, old: Mapping[str, str]) -> None:
        """Seal the new values and forget those that the object has no more.

        Args:
            env: the environment.
            unit: an open unit of work.
            object_id: whose values they are.
            old: its references until now by dotted path.
        """
        for path, value in self.new.items():
            reference = own_reference(object_id, path)
            unit.secrets.put(reference, env.secrets.seal(reference, value))
        forget_own(unit, object_id, {p: r for p, r in old.items() if p not in self.own})


def own_reference(object_id: str, path: str) -> str:
    """Reference of a value that belongs to one object."""
    return f"secret://catalog/{object_id}/{path}"


def forget_own(unit: UnitOfWork, object_id: str, references: Mapping[str, str]) -> None:
    """Delete the object's own values; those of named secrets stay.

    Args:
        unit: an open unit of work.
        object_id: whose values they are.
        references: its references by dotted path.
    """
    for path, reference in references.items():
        if reference == own_reference(object_id, path):
            unit.secrets.delete(reference)


def settle(
    env: Environment,
    unit: UnitOfWork,
    given: Mapping[str, SecretValue],
    old: Mapping[str, str],
    old_names: Mapping[str, str],
    pointer: str,
) -> SettledSecrets:
    """Look up what is named, keep what is left out.

    Args:
        env: the environment.
        unit: an open unit of work.
        given: field path to value, to the name of a secret, or None: the object's own value stays.
        old: references that the object has now.
        old_names: names among them.
        pointer: of the object in a request body, such as ``#/kafka``.

    Raises:
        RequestError: a named secret does not exist; the name is not repeated, it may be a password.
    """
    faults = Faults()
    known, new, names, shared = {}, {}, {}, {}
    for path, value in given.items():
        if isinstance(value, SecretName):
            secret = _usable(unit, value.name)
            if secret is None:
                place = f"{pointer}/{path.replace('.', '/')}_secret"
                hint = "CREATE SECRET first; a value of its own stands in single quotes"
                faults.add(
                    "validation", f"{path}: there is no secret of this name.", pointer=place, hint=hint
                )
                continue
            names[path], shared[path] = value.name, secret.reference
            known[path] = _open(env, unit, secret.reference)
        elif value is not None:
            known[path] = new[path] = value
        elif path in old and path not in old_names:
            known[path] = _open(env, unit, old[path])
    faults.raise_if_any()
    stored = {path: stored_value(env, unit, reference) for path, reference in old.items()}
    own = frozenset(known) - frozenset(names)
    return SettledSecrets(known, own, new, names, shared, changed=known != stored)


def refuse_elsewhere(
    given: Mapping[str, SecretValue],
    old: Mapping[str, str],
    old_names: Mapping[str, str],
    moved: Sequence[str],
    pointer: str,
) -> None:
    """A stored value is sent only to the place it was given for; for another it must be given again.

    Otherwise who may change an address but does not know the secret could have it sent to himself.

    Args:
        given: field path to value, to the name of a secret, or None: the object's own value stays.
        old: references that the object has now.
        old_names: names among them.
        moved: the settings that say where secrets go, and that are no longer what they were.
        pointer: of the object in a request body.

    Raises:
        RequestError: validation, for each secret that would be kept.
    """
    faults = Faults()
    kept = [path for path, value in given.items() if value is None and path in old and path not in old_names]
    for path in kept if moved else ():
        detail = f"{path} must be given again: it would now be sent elsewhere, as {', '.join(moved)} changed."
        hint = "A stored secret is kept only for the place that it was given for."
        faults.add("validation", detail, pointer=f"{pointer}/{path.replace('.', '/')}", hint=hint)
    faults.raise_if_any()


def moved_settings(old: Mapping[str, Any], new: Mapping[str, Any], addresses: Mapping[str, Any]) -> list[str]:
    """The settings that have changed, of these; fewer servers of a list are no other place.

    Args:
        old: settings that are stored.
        new: those that take their place.
        addresses: dotted path to default.
    """

    def places(settings: Any, path: str) -> set[str]:
        for part in path.split("."):
            settings = settings.get(part) if isinstance(settings, Mapping) else None
        value = addresses[path] if settings is None else settings
        return {part.strip() for part in str(value).split(",")}

    return [path for path in addresses if not places(new, path) <= places(old, path)]


def stored_value(env: Environment, unit: UnitOfWork, reference: str) -> str | None:
    """The value to compare a new one with; None where it cannot be opened, so that it can be set again.

    It waits for no secret store: of a value outside what was read last counts.

    Args:
        env: the environment.
        unit: an open unit of work.
        reference: of the value.
    """
    try:
        return _open(env, unit, reference)
    except InternalError:
        return None


def uses_outside(unit: UnitOfWork, references: Iterable[str]) -> bool:
    """Whether one of the values is kept outside the catalog.

    Args:
        unit: an open unit of work.
        references: of the values.
    """
    found = (held(unit, reference) for reference in references)
    return any(one is not None and one.outside is not None for one in found)


def planned_value(env: Environment, unit: UnitOfWork, value: SecretValue) -> str | None:
    """A value that is only planned; None of a secret that is not there yet, or cannot be opened.

    Args:
        env: the environment.
        unit: an open unit of work.
        value: a value, or the name of a secret.

    Raises:
        SecretStoreError: the secret store of a reference does not give the value.
    """
    if not isinstance(value, SecretName):
        return value
    secret = _usable(unit, value.name)
    if secret is None:
        return None
    if secret.outside is not None:
        return env.outside.value(secret.outside)
    return stored_value(env, unit, secret.reference)


def _usable(unit: UnitOfWork, name: str) -> Secret | None:
    """The secret, where the principal may use it: who may only change it must not send it anywhere."""
    found, desk = unit.named_secrets.find(name), desk_of(unit)
    if found is None or desk is None or desk.may(Privilege.USAGE, "secret", quote(name), found.meta.owner):
        return found
    return None


def _open(env: Environment, unit: UnitOfWork, reference: str) -> str:
    found = held(unit, reference) or Held(reference)
    if found.outside is not None:
        return env.outside.known(found.outside) or _STAND_IN
    return opened(env, found)
