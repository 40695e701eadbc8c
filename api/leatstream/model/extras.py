"""How an extra of the package is installed: from where the package itself is, which is on no index yet."""

from __future__ import annotations

import json
import shlex
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

_NAME = "leatstream"


def install_extra(*extras: str) -> str:
    """The command that installs extras beside this package, by how it was installed (PEP 610).

    Args:
        extras: such as ``tools``.
    """
    try:
        text = metadata.distribution(_NAME).read_text("direct_url.json")
        origin = json.loads(text) if text else {}
    except (metadata.PackageNotFoundError, ValueError):
        origin = {}
    parts = urlsplit(str(origin.get("url") or ""))
    if parts.scheme == "file" and not Path(unquote(parts.path)).exists():
        origin = {}  # such as a wheel that was deleted after its use
    return command_of(",".join(extras), origin)


def command_of(extras: str, origin: dict[str, object]) -> str:
    """The command, by the origin that the installer has noted.

    Args:
        extras: joined by commas.
        origin: what ``direct_url.json`` says; empty without one.
    """
    url = str(origin.get("url") or "")
    parts = urlsplit(url)
    if parts.scheme != "file":
        # Another address may hold a password, and a server's hints reach its callers.
        wheel = f"{_NAME}[{extras}] @ file:///path/to/{_NAME}-VERSION-py3-none-any.whl"
        return f"pip install '{wheel}', or in a checkout: pip install -e '.[{extras}]'"
    if "dir_info" in origin:
        return f"pip install -e {shlex.quote(f'{unquote(parts.path)}[{extras}]')}"
    return f"pip install {shlex.quote(f'{_NAME}[{extras}] @ {url}')}"
