"""Review a Terraform plan: list what it does to queries, as Markdown, and refuse to lose state or data.

    terraform show -json plan.bin | python review.py > review.md

The exit status is 1 if the plan restarts a query without its state, replaces or deletes one, or deletes an
entity. To allow that, name the addresses in the environment variable ``ALLOW``, separated by spaces. A new
query whose job failed before it ran may be replaced: it has no state.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

JOBS = ("leatstream_query", "leatstream_application")
MEANING = {
    "none": "the job is not touched",
    "hot": "the running job takes the new settings",
    "restart-keep-state": "the job restarts and keeps its state",
    "restart-from-offsets": "the job restarts where it stopped reading",
    "new-state": "**the state is lost**: the job starts again at its starting positions",
    "blue-green": "the new version runs beside the old one until it has caught up",
    "start-again": "the failed job is started again",
}
COSTLY = ("new-state",)


def effect(resource: dict[str, Any]) -> tuple[str, bool]:
    """What a planned change of a query or application does to its job, and whether somebody must allow it."""
    change = resource["change"]
    actions, after = change["actions"], change.get("after") or {}
    if "delete" in actions:
        return ending(resource, change.get("before") or {})
    if actions == ["create"]:
        return "created", False
    kind = (after.get("change") or {}).get("class") or "none"
    reason = (after.get("change") or {}).get("reason")
    return MEANING.get(kind, kind) + (f" ({reason})" if reason and kind != "none" else ""), kind in COSTLY


def ending(resource: dict[str, Any], before: dict[str, Any]) -> tuple[str, bool]:
    """What the planned deletion of a query or application loses, and whether somebody must allow it."""
    status, topic = before.get("status") or {}, before.get("delete_sink_entity")
    tainted = resource.get("action_reason") == "replace_because_tainted"
    # An older provider does not say whether the job has run.
    if tainted and status.get("state") == "failed" and status.get("has_run") is False and not topic:
        return "replaced: its creation failed before its job ran, so no state is lost", False
    text = f"**{'replaced' if 'create' in resource['change']['actions'] else 'deleted'}**: "
    text += "its checkpoint and state are deleted" + (", with the topic that it writes" if topic else "")
    if tainted:
        text += f". It is tainted; to keep it: `terraform untaint '{resource['address']}'`"
    return text, True


def review(plan: dict[str, Any], allowed: set[str]) -> tuple[str, list[str]]:
    """The review of a plan as Markdown, and the addresses that nobody has allowed."""
    rows, others, refused = [], [], []
    for resource in plan.get("resource_changes", []):
        address, change = resource["address"], resource["change"]
        if change["actions"] in (["no-op"], ["read"]):
            continue
        costly = False
        if resource["type"] in JOBS:
            text, costly = effect(resource)
            rows.append(f"| `{address}` | {text} |")
        else:
            costly = resource["type"] == "leatstream_entity" and "delete" in change["actions"]
            others.append(f"- `{address}`: {' and '.join(change['actions'])}")
        if costly and address not in allowed:
            refused.append(address)
    return "\n".join(_lines(rows, others, refused)), refused


def _lines(rows: list[str], others: list[str], refused: list[str]) -> list[str]:
    lines = ["### Plan"]
    if not rows and not others:
        lines += ["", "No changes."]
    if rows:
        lines += ["", "| query | effect |", "|---|---|", *rows]
    if others:
        lines += ["", "Other objects:", "", *others]
    if refused:
        names = " ".join(refused)
        lines += ["", f'**Refused**: state or data would be lost. If that is meant, set `ALLOW="{names}"`.']
    return lines


def main() -> int:
    """Review the plan on standard input."""
    text, refused = review(json.load(sys.stdin), set(os.environ.get("ALLOW", "").split()))
    print(text)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
