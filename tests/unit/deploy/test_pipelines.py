"""``examples/pipelines``: the review of a plan, and that the workflows call steps that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

PIPELINES = Path(__file__).resolve().parents[3] / "examples" / "pipelines"


def planned(*actions: str, kind: str = "leatstream_query", **change: Any) -> dict[str, Any]:
    """A plan with one change."""
    resource = {"address": f"{kind}.it", "type": kind, "change": {"actions": list(actions), **change}}
    return {"resource_changes": [resource]}


def tainted(has_run: bool | None = False, state: str = "failed", **before: Any) -> dict[str, Any]:
    """A plan that replaces what was created with an error."""
    before |= {"status": {"state": state, "has_run": has_run}}
    plan = planned("delete", "create", before=before, after={})
    plan["resource_changes"][0]["action_reason"] = "replace_because_tainted"
    return plan


def review(plan: dict[str, Any], allow: str = "") -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, PIPELINES / "review.py"],
        input=json.dumps(plan),
        env={"ALLOW": allow},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def updated(kind: str) -> dict[str, Any]:
    return planned("update", before={}, after={"change": {"class": kind, "reason": "the window changes"}})


@pytest.mark.parametrize(
    ("plan", "status", "said"),
    [
        ({"resource_changes": []}, 0, "No changes."),
        (planned("no-op"), 0, "No changes."),
        (planned("create", before=None, after={}), 0, "| created |"),
        (updated("restart-keep-state"), 0, "keeps its state (the window changes)"),
        (updated("new-state"), 1, 'set `ALLOW="leatstream_query.it"`'),
        (
            planned("delete", "create", before={}, after={}),
            1,
            "**replaced**: its checkpoint and state are deleted",
        ),
        (tainted(), 0, "| replaced: its creation failed before its job ran, so no state is lost |"),
        (tainted(has_run=True), 1, "to keep it: `terraform untaint 'leatstream_query.it'`"),
        (tainted(has_run=None), 1, "its checkpoint and state are deleted. It is tainted"),
        (tainted(state="starting"), 1, "its checkpoint and state are deleted. It is tainted"),
        (tainted(delete_sink_entity=True), 1, "with the topic that it writes. It is tainted"),
        (
            planned("delete", "create", before={"status": {"state": "failed", "has_run": False}}, after={}),
            1,
            "**replaced**: its checkpoint and state are deleted |",
        ),
        (
            planned("delete", before={"delete_sink_entity": True}, after=None),
            1,
            "with the topic that it writes",
        ),
        (
            planned("delete", kind="leatstream_entity", before={}, after=None),
            1,
            "- `leatstream_entity.it`: delete",
        ),
        (
            planned("update", kind="leatstream_schema", before={}, after={}),
            0,
            "- `leatstream_schema.it`: update",
        ),
    ],
)
def test_the_review_says_what_happens(plan: dict[str, Any], status: int, said: str) -> None:
    found, text = review(plan)
    assert (found, said in text) == (status, True), text
    if status:
        allowed, text = review(plan, allow=plan["resource_changes"][0]["address"])
        assert (allowed, "Refused" in text) == (0, False)


@pytest.mark.parametrize("file", sorted(PIPELINES.glob("git*/*.yml")) + sorted(PIPELINES.glob("git*/.*.yml")))
def test_workflows_call_steps_that_exist(file: Path) -> None:
    text = file.read_text()
    assert yaml.safe_load(text)
    steps = re.findall(r"examples/pipelines/(\S+\.sh)", text)
    workflows = re.findall(r"uses: \./\.github/workflows/(\S+)", text)
    assert steps or workflows
    for name in steps:
        assert (PIPELINES / name).stat().st_mode & 0o111, name
    for name in workflows:
        assert (PIPELINES / "github" / name).is_file(), name
    for environment in ("dev", "staging", "prod"):
        assert (PIPELINES / "environments" / f"{environment}.tfvars").exists()


@pytest.mark.parametrize("file", sorted(PIPELINES.glob("*.sh")))
def test_steps_are_valid_shell(file: Path) -> None:
    subprocess.run(["bash", "-n", file], check=True)
