"""What the demo leaves behind: nothing, unless it is asked to, whatever goes wrong."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from leatstream.cli import demo, demo_deploy
from leatstream.cli.client import Client
from leatstream.cli.connection import Connection
from leatstream.cli.demo_deploy import DemoFailure, Deployment

READY = {"url": "http://service.test", "token": "leat_x", "kafka_bootstrap": "127.0.0.1:9", "pid": 1}
READY["kinesis_endpoint"] = "http://127.0.0.1:8"
QUERY = {
    "name": "q",
    "sources": ["demo.public.pageviews"],
    "sink": "demo.public.out",
    "effective": {
        "topic.shards": {"value": 4, "origin": "left_most_source", "from": "demo.public.pageviews"},
        "topic": {"value": "out", "origin": "default"},
    },
    "status": {"state": "running", "job": {"mode": "realtime", "mode_reason": "stateless"}},
}
RECORD = {"partition": 0, "offset": 1, "timestamp": 1, "key": "k", "value": {"userid": "b"}, "headers": []}


class FakeDeployment:
    """Notes what it is told to do; ``broken`` names a step that fails."""

    broken: str | None = None
    steps: list[str]
    directory = Path("/stack")

    def __init__(self, work: Path, ready: dict[str, Any]) -> None:
        FakeDeployment.steps = []

    def __getattr__(self, name: str) -> Any:
        def step(*_: Any, **__: Any) -> str:
            self.steps.append(name)
            if name == self.broken:
                raise DemoFailure(f"{name} failed")
            return f"{name} done"

        return step


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A stack that is up at once; the list holds an entry when it has been stopped."""
    ended: list[str] = []

    def start(command: list[str], log: Path) -> Any:
        Path(command[command.index("--ready-file") + 1]).write_text(json.dumps(READY))
        return 1, lambda: None, lambda: ended.append("stopped")

    def answer(request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        if re.fullmatch(r"/v1/stores/[^/]+/entities/[^/]+/records", path):
            return httpx2.Response(200, text=json.dumps(RECORD) + "\n")
        if path.startswith("/v1/relations"):
            return httpx2.Response(
                200, json={"store": "kafka", "topic": None, "effective": {"topic": {"value": "out"}}}
            )
        if path.endswith("/entities"):
            return httpx2.Response(200, json={"items": [{"name": "out"}], "next_page_token": None})
        if path == "/v1/queries":
            return httpx2.Response(200, json={"items": [QUERY], "next_page_token": None})
        if "destroy" in FakeDeployment.steps:
            return httpx2.Response(404, json={"status": 404, "code": "not-found"})
        return httpx2.Response(200, json=QUERY)

    def client(connection: Connection) -> Client:
        return Client(connection, httpx2.MockTransport(answer))

    monkeypatch.setattr(demo, "_start_tied", start)
    monkeypatch.setattr(demo, "_start_free", start)
    monkeypatch.setattr(demo, "Deployment", FakeDeployment)
    monkeypatch.setattr(demo, "Client", client)
    monkeypatch.setattr(demo.signal, "signal", lambda *_: None)
    monkeypatch.setattr(demo.tempfile, "mkdtemp", lambda **_: str(make(tmp_path / "work")))
    monkeypatch.setattr(FakeDeployment, "broken", None)
    return ended


def make(path: Path) -> Path:
    path.mkdir()
    return path


def test_all_steps_and_nothing_left(
    stopped: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.run_demo(keep=False) == 0
    refused = ["synthesize", "init", "plan_is_refused", "synthesize", "plan_is_refused"]
    assert FakeDeployment.steps == [*refused, "synthesize", "apply", "plan_is_empty", "destroy"]
    assert stopped == ["stopped"]
    assert not (tmp_path / "work").exists()
    out = capsys.readouterr().out
    assert '{"userid": "b"}' in out
    assert "topic.shards = 4, inferred from demo.public.pageviews" in out


def test_without_the_example_nothing_is_started(
    stopped: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_deploy, "__file__", str(tmp_path / "a" / "b" / "c" / "d.py"))
    assert demo.run_demo(keep=False) == 1
    assert stopped == []
    assert "leat dev" in capsys.readouterr().out


@pytest.mark.parametrize("broken", ["synthesize", "plan_is_refused", "apply", "plan_is_empty", "destroy"])
def test_a_failure_stops_the_stack(
    stopped: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    monkeypatch.setattr(FakeDeployment, "broken", broken)
    assert demo.run_demo(keep=broken != "destroy") == 1
    assert stopped == ["stopped"]
    assert not (tmp_path / "work").exists()


def test_without_terraform_it_says_what_is_missing(
    stopped: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "Deployment", Deployment)
    monkeypatch.setattr("leatstream.dev.tools.find_terraform", lambda: None)
    assert demo.run_demo(keep=True) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "Terraform missing" in out
    assert "leat doctor" in out
    assert "Traceback" not in out
    # Nothing was begun that would stay.
    assert stopped in ([], ["stopped"])
    assert not (tmp_path / "work").exists()


def test_interruption_stops_the_stack(
    stopped: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo.Demo, "_wait_for_queries", interrupted)
    assert demo.run_demo(keep=False) == 130
    assert stopped == ["stopped"]
    assert not (tmp_path / "work").exists()


def test_keep_leaves_it_running_and_says_where(
    stopped: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.run_demo(keep=True) == 0
    assert stopped == []
    assert (tmp_path / "work").exists()
    out = capsys.readouterr().out
    assert "http://service.test" in out
    assert "leat_x" not in out


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    deployment = object.__new__(Deployment)
    deployment._env = {}
    deployment._work = tmp_path
    hang = [sys.executable, "-c", "import time; time.sleep(600)"]
    with pytest.raises(DemoFailure, match=r"A step was not done after 0\.5 s"):
        deployment._run(hang, 0.5, "A step")
