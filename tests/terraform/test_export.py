"""What was made by hand, exported: the real Terraform imports all of it and changes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.core

COLUMNS = [{"name": "viewtime", "type": "BIGINT"}, {"name": "userid", "type": "VARCHAR", "comment": "who"}]
CODE = "def score(points):\n    return points\n"


def _world(tag: str, bootstrap: str) -> dict[str, Any]:
    """Bodies by path, in the order in which they are made."""
    database, store, topic = f"db_{tag}", f"store_{tag}", f"views_{tag}"
    selected = f"CREATE STREAM one_{tag} AS\n  SELECT userid, '${{x}}' AS text\n  FROM views;"
    application = f"BEGIN APPLICATION app_{tag}\n  CREATE STREAM two_{tag} AS SELECT userid FROM views;\nEND APPLICATION"
    place = {"database": database, "schema": "main", "store": store}
    return {
        f"secrets/secret_{tag}": {"value": "hunter2", "properties": {"of": "kafka"}},
        f"schema-registries/registry_{tag}": {
            "type": "confluent",
            "uris": "http://127.0.0.1:9",
            "username": "leat",
            "password": "hunter3",
        },
        f"stores/{store}": {"kafka": {"bootstrap_servers": bootstrap}, "comment": "it's\nours"},
        f"databases/{database}": {"comment": "made by hand"},
        f"databases/{database}/schemas/main": {},
        f"stores/{store}/entities/{topic}": {"kafka": {"partitions": 2, "replicas": 1}},
        f"function-sources/source_{tag}": {"file": "scores.py", "content": CODE},
        f"functions/score_{tag}": {
            "arguments": [{"name": "points", "type": "BIGINT"}],
            "returns": "BIGINT",
            "source": f"source_{tag}",
            "handler": "score",
        },
        f"relations/{database}.main.views": {
            "columns": COLUMNS,
            "store": store,
            "topic": topic,
            "value_format": "json",
            "timestamp": "viewtime",
        },
        f"relations/{database}.main.newest": {
            "kind": "changelog",
            "columns": COLUMNS,
            "primary_key": ["userid"],
            "store": store,
            "topic": topic,
            "value_format": "json",
        },
        f"queries/query_{tag}": {"sql": selected, "desired_state": "stopped", "comment": "one", **place},
        f"applications/app_{tag}": {"sql": application, "desired_state": "stopped", **place},
        f"roles/role_{tag}": {
            "grants": [
                {"privilege": "usage", "on": "database", "name": database},
                {"privilege": "select", "on": "relation", "name": f"{database}.main.views"},
            ]
        },
        f"service-accounts/ci_{tag}": {"roles": [f"role_{tag}"]},
    }


@pytest.fixture
def names(leatstream_server: Any) -> Iterator[list[str]]:
    """Names to export of a world that was made over REST."""
    tag = uuid.uuid4().hex[:8]
    world = _world(tag, leatstream_server.kafka_bootstrap)
    with leatstream_server.client() as client:
        for path, body in world.items():
            answer = client.put(f"/v1/{path}", json=body)
            assert answer.status_code in (200, 201), f"{path}: {answer.text}"
        yield [
            f"db_{tag}",
            *(f"{one}_{tag}" for one in ("secret", "registry", "store", "source", "score", "role", "ci")),
        ]
        for path in reversed(world):
            answer = client.delete(f"/v1/{path}")
            assert answer.status_code in (202, 204), f"{path}: {answer.text}"


def test_an_export_imports_everything_and_changes_nothing(
    terraform: Any, leatstream_server: Any, names: list[str], tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "LEATSTREAM_URL": leatstream_server.url,
        "LEATSTREAM_TOKEN": leatstream_server.token,
    }

    def run(*arguments: str, **more: Any) -> None:
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False, **more
        )
        assert done.returncode == 0, done.stderr

    def imports_alone() -> None:
        plan = terraform.plan()
        changes = plan.document["resource_changes"]
        assert len(changes) == 13
        assert all(one["change"].get("importing") for one in changes)
        assert plan.actions() == {}
        assert "hunter" not in "".join(path.read_text() for path in terraform.folder.glob("*.tf*"))

    leat = ("-m", "leatstream.cli.main", "export", "--format")
    run(*leat, "hcl", "-o", str(terraform.folder), *names)
    terraform.init()
    terraform.run("fmt", "-check", "-diff", "-recursive")
    imports_alone()

    # The same by the CDK: its stack in place of the configuration.
    run(*leat, "cdktf", "-o", str(tmp_path / "cdk"), *names)
    run("main.py", cwd=tmp_path / "cdk")
    for path in terraform.folder.glob("*.tf"):
        path.unlink()
    shutil.copy(tmp_path / "cdk/cdktf.out/stacks/leatstream/cdk.tf.json", terraform.folder)
    terraform.run("init", "-reconfigure", "-no-color")
    imports_alone()
