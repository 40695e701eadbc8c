"""Wraps every stored secret under the primary key of the key ring, while servers run.

Only ``secrets`` holds encrypted values. A value that is wrapped is committed with some others, so a run that
is cut off is completed by the next one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from leatstream.errors import CatalogError, Fault, InternalError, StackError
from leatstream.model.access import AuditEvent
from leatstream.model.names import quote
from leatstream.ports import OpenUnit, UnitOfWork
from leatstream.services.environment import Principal
from leatstream.services.environment.audit import event_of
from leatstream.services.environment.authorization import ADMINISTRATOR
from leatstream.storage.secret_box import KeyRingBox, key_of
from leatstream.storage.sharing import KEY_PROOF, VIEWS_PASSWORD

_BATCH = 100  # values of one transaction: other writers wait for it
_MOST_PASSES = 5
_NO_KEY = "(no envelope)"


@dataclass(frozen=True, slots=True)
class Rotation:
    """The result of a rotation.

    Attributes:
        key: id of the primary key.
        wrapped: values that were wrapped under it.
        present: values that were under it before.
        unowned: values of no object, which no key opens and nobody uses.
        left: key to number of values that servers have sealed with it meanwhile.
    """

    key: str
    wrapped: int
    present: int
    unowned: int
    left: dict[str, int]


def rotate(open_unit: OpenUnit, box: KeyRingBox, unowned: frozenset[str] = frozenset()) -> Rotation:
    """Wrap every value under the primary key; values that are under it stay as they are.

    Args:
        open_unit: of the catalog.
        box: with the key ring.
        unowned: references of values that no key opens and no object uses.
    """
    present = count_by_key(open_unit)[box.ring.primary]
    wrapped = 0
    for _ in range(_MOST_PASSES):  # what a server seals behind a pass is found by the next one
        found = _pass(open_unit, box, unowned)
        wrapped += found
        if not found:
            break
    left = count_by_key(open_unit, without=unowned)
    del left[box.ring.primary]
    return Rotation(box.ring.primary, wrapped, present, len(unowned), dict(left))


def count_by_key(open_unit: OpenUnit, without: frozenset[str] = frozenset()) -> Counter[str]:
    """Id of a key to the number of values that are wrapped under it.

    Args:
        open_unit: of the catalog.
        without: references that do not count.
    """
    counts: Counter[str] = Counter()
    after = ""
    while True:
        with open_unit(write=False) as unit:
            rows = unit.sealed_values(after, _BATCH)
        if not rows:
            return counts
        counts.update(key_of(envelope) or _NO_KEY for reference, envelope in rows if reference not in without)
        after = rows[-1][0]


def refuse_used(open_unit: OpenUnit, key_id: str) -> None:
    """CatalogError has-dependents if values are wrapped under this key.

    Args:
        open_unit: of the catalog.
        key_id: that is to be removed.
    """
    used = count_by_key(open_unit)[key_id]
    if used:
        values = "1 stored value is" if used == 1 else f"{used} stored values are"
        raise CatalogError(
            "has-dependents",
            f"{values} encrypted with key {key_id}.",
            hint="Run leat admin rotate-key first.",
        )


def _pass(open_unit: OpenUnit, box: KeyRingBox, without: frozenset[str]) -> int:
    after, total = "", 0
    while True:
        with open_unit() as unit:
            rows = unit.sealed_values(after, _BATCH)
            if not rows:
                return total
            after, found = rows[-1][0], 0
            for reference, envelope in rows:
                if reference not in without and key_of(envelope) != box.ring.primary:
                    unit.secrets.put(reference, box.rewrap(reference, envelope))
                    found += 1
            if found:
                unit.audit.add(_event(box.ring.primary))
                unit.commit()
                total += found


def _event(key_id: str) -> AuditEvent:
    return event_of(Principal(ADMINISTRATOR, "sysadmin"), "rotate", "key", key_id)


def refuse_unreadable(open_unit: OpenUnit, box: KeyRingBox) -> frozenset[str]:
    """See that every value opens with a key of the ring.

    Args:
        open_unit: of the catalog.
        box: with the key ring.

    Returns:
        References of values that no key opens, and that belong to no object.

    Raises:
        StackError: part-failed, with each object whose value opens with no key.
    """
    after, unreadable, unowned = "", [], []
    while True:
        with open_unit(write=False) as unit:
            rows = unit.sealed_values(after, _BATCH)
            if not rows:
                break
            after = rows[-1][0]
            for reference, envelope in rows:
                try:
                    box.open(reference, envelope)
                except InternalError:
                    owner = _owner(unit, reference)
                    if owner is None:
                        unowned.append(reference)
                    else:
                        unreadable.append(_unreadable(owner, key_of(envelope)))
    if unreadable:
        raise StackError("part-failed", "Stored values open with no key of the key ring.", faults=unreadable)
    return frozenset(unowned)


def _unreadable(owner: str, key_id: str | None) -> Fault:
    why = "it is damaged" if key_id is None else f"it was encrypted with key {key_id}"
    return Fault(
        f"{owner} opens with no key of the key ring: {why}. Nothing was changed.",
        hint="Restore that key from a backup of the key file, or give the object its secret again.",
    )


def _owner(unit: UnitOfWork, reference: str) -> str | None:
    """What a value belongs to, for a person; None if it belongs to nothing."""
    if reference == KEY_PROOF:
        return "The proof of the key ring"
    if reference == VIEWS_PASSWORD:
        return "The password of the views' role"
    object_id, _, path = reference.removeprefix("secret://catalog/").partition("/")
    secret = unit.named_secrets.find_by_id(object_id)
    if secret is not None:
        return f"Secret {quote(secret.name)}"
    store = unit.stores.find_by_id(object_id)
    if store is not None:
        return f"{path} of store {quote(store.name)}"
    registry = unit.schema_registries.find_by_id(object_id)
    return None if registry is None else f"{path} of schema registry {quote(registry.name)}"
