"""What an update does to the job that runs: the attribute ``change`` and one warning for each query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leatstream_terraform.codec import UNKNOWN
from leatstream_terraform.diagnostics import Diagnostic
from leatstream_terraform.schema import Attribute, Resource
from leatstream_terraform.session import label

#: Classes that leave the job as it is.
_UNTOUCHED = (None, "none", "hot")
_SAME = "the statement stays the same"


def set_change(resource: Resource, planned: dict[str, Any], value: Any) -> None:
    """Set the attribute that says what an update does, in place, where the resource has one."""
    item = resource.with_semantic("change")
    if item is not None:
        planned[item.name] = value


def change(kind: str, reason: str) -> dict[str, str]:
    """A value of that attribute."""
    return {"class": kind, "reason": reason}


def of_plan(
    resource: Resource, planned: dict[str, Any], plan: Mapping[str, Any], item: Attribute
) -> list[Diagnostic]:
    """Note the change that a dry run reports, in place; a warning for each query whose job is affected."""
    changed = plan.get("change")
    if not isinstance(changed, Mapping):
        return []
    kind, reason = str(changed.get("class")), str(changed.get("reason") or "The statement changes.")
    set_change(resource, planned, change(kind, reason))
    name = label(resource, planned)
    # Terraform shows one of several warnings with the same summary: each has the name of its query.
    found = [
        _affected(f"{name}, query {one.get('name')}", one["plan"]["change"], item)
        for one in plan.get("queries") or []
        if (one.get("plan") or {}).get("change")
    ]
    found += [
        Diagnostic(
            f"{name}, query {gone}: it ends", "The new text does not have it.", (item.name,), "warning"
        )
        for gone in plan.get("removed") or []
    ]
    if not found:
        found = [_affected(name, changed, item)]
    return [one for one in found if one is not None]


def _affected(name: str, changed: Mapping[str, Any], item: Attribute) -> Diagnostic | None:
    kind = changed.get("class")
    if kind in _UNTOUCHED:
        return None
    reason = str(changed.get("reason") or "The statement changes.")
    return Diagnostic(f"{name}: the running job is affected: {kind}", reason, (item.name,), "warning")


def is_refused(resource: Resource, planned: Mapping[str, Any]) -> bool:
    """Return whether the service has said that the object cannot change in place."""
    item = resource.with_semantic("change")
    changed = planned.get(item.name) if item is not None else None
    return isinstance(changed, Mapping) and changed.get("class") == "refused"


def failed(resource: Resource, prior: Mapping[str, Any], planned: Mapping[str, Any]) -> str | None:
    """Why the job that shall run has failed; None where it has not."""
    wait, status = resource.wait, prior.get("status")
    if not wait or not isinstance(status, Mapping) or status.get("state") not in wait["failed"]:
        return None
    if planned.get(wait["follow"]) != "running":
        return None
    return str(status.get("message") or "the service gives no cause")


def cure(status: Mapping[str, Any]) -> str:
    """What a status says to do about a failure, as a paragraph; empty where it says nothing."""
    hint = status.get("hint")
    return f"\n\nWhat to do: {hint}" if hint else ""


def start_again(
    resource: Resource, prior: Mapping[str, Any], planned: dict[str, Any], cause: str
) -> Diagnostic:
    """Plan to start a failed job, in place, and say why; the class of another change of it stays.

    Args:
        resource: its type.
        prior: its value before, of which the status has the cure.
        planned: its planned value.
        cause: why the job failed.
    """
    item = resource.with_semantic("change")
    changed = planned.get(item.name) if item is not None else None
    if not isinstance(changed, Mapping) or changed.get("class") in _UNTOUCHED:
        set_change(resource, planned, change("start-again", f"the job failed: {cause}"))
    return Diagnostic(
        f"{label(resource, planned)} failed and is started again",
        f"{cause}{cure(prior['status'])}\n\nIf the cause remains, it fails again, and the apply with it.",
        (),
        "warning",
    )


def unchanged(resource: Resource, planned: dict[str, Any]) -> None:
    """Note, in place, that an update leaves the statement as it is."""
    set_change(resource, planned, change("none", _SAME))


def told_by(resource: Resource, planned: Mapping[str, Any], answer: Mapping[str, Any], state: Any) -> None:
    """Take from the answer, in place, what the plan could not know."""
    item = resource.with_semantic("change")
    if item is None or planned.get(item.name) is not UNKNOWN or not isinstance(state, dict):
        return
    changed = (answer.get("plan") or {}).get("change")
    state[item.name] = change(str(changed.get("class")), str(changed.get("reason"))) if changed else None
