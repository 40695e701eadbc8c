"""A new query whose first job fails: what Terraform keeps, what the next plan does, and what the review says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from query_scene import Scene

REVIEW = Path(__file__).resolve().parents[2] / "examples" / "pipelines" / "review.py"
# In real-time mode the job counts as running before it has read a record.
WRONG = """    CREATE STREAM out_$tag AS
    SELECT userid, 1 / (viewtime - 7) AS share
    FROM ${leatstream_stream.views.fqn} WITH ('starting.position' = 'earliest')
    QUERY WITH ('mode' = 'micro_batch');"""
ADDRESS = "leatstream_query.q"


def reviewed(plan: Any) -> tuple[int, str]:
    """Exit status and text of the review that pipelines run."""
    done = subprocess.run(
        [sys.executable, REVIEW],
        input=json.dumps(plan.document),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_a_query_that_failed_before_it_ran_blocks_no_pipeline(terraform: Any, leatstream_server: Any) -> None:
    scene = Scene(terraform, leatstream_server)
    scene.write(None)
    terraform.init()
    terraform.apply()
    with leatstream_server.client() as client:
        sql = f"INSERT INTO db_{scene.tag}.main.views VALUES (7, 'a')"
        answer = client.post("/v1/statements", json={"sql": sql})
        assert answer.status_code == 200, answer.text
    scene.write(WRONG)
    said = terraform.fails("apply", "-auto-approve")
    assert "divided by zero" in said
    assert "What to do: To skip this record" in said
    assert "Its job has not run, so no state is lost." in said
    kept = terraform.state()[ADDRESS]["status"]
    assert (kept["state"], kept["has_run"]) == ("failed", False)
    assert kept["hint"].startswith("To skip this record")

    scene.write(WRONG.replace("- 7", "+ 7"))
    plan = terraform.plan()
    assert plan.actions() == {ADDRESS: ["delete", "create"]}
    status, text = reviewed(plan)
    assert (status, f"| `{ADDRESS}` | replaced: its creation failed before its job ran" in text) == (0, True)

    terraform.run("untaint", ADDRESS)
    shown = " ".join(terraform.run("plan", "-no-color", "-out", "plan.bin").stdout.split())
    assert f"{ADDRESS} will be updated in-place" in shown
    assert "failed and is started again" in shown
    assert "What to do: To skip this record" in shown
    terraform.apply("plan.bin")
    assert terraform.state()[ADDRESS]["status"]["has_run"] is True
    terraform.is_settled()

    terraform.run("taint", ADDRESS)
    status, text = reviewed(terraform.plan())
    assert (status, f"terraform untaint '{ADDRESS}'" in text) == (1, True), text
    terraform.run("untaint", ADDRESS)
    terraform.destroy()
