"""Puts the provider where ``terraform init`` finds it, with no registry and no CLI configuration."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from importlib.resources import files
from pathlib import Path

from leatstream_terraform import ADDRESS, HOST, NAME, NAMESPACE, VERSION

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class InstallError(Exception):
    """The provider cannot be installed here; the text says why and what to do."""


def implied_mirror() -> Path:
    """The directory that Terraform and OpenTofu search by default."""
    return Path.home() / ".terraform.d" / "plugins"


def package_folder(mirror: Path) -> Path:
    """Where a mirror holds this version for this machine.

    Raises:
        InstallError: the provider's launcher does not run on this system.
    """
    system, machine = platform.system().lower(), platform.machine().lower()
    if system not in ("linux", "darwin", "freebsd"):
        raise InstallError(
            f"The provider's launcher is a POSIX shell script and does not run on {platform.system()}. "
            "Use the Windows Subsystem for Linux."
        )
    target = f"{system}_{_ARCHITECTURES.get(machine, machine)}"
    return mirror / HOST / NAMESPACE / NAME / VERSION / target


def install(mirror: Path | None = None, dev: bool = False, uninstall: bool = False) -> str:
    """Install or remove the provider.

    Args:
        mirror: directory of a filesystem mirror; None takes the one that Terraform searches by itself.
        dev: also tell the ``dev_overrides`` block that skips ``terraform init`` and the lock file.
        uninstall: remove instead.

    Returns:
        What was done and what to write next, for a person.

    Raises:
        InstallError: the launcher does not run on this system.
        OSError: the directory cannot be written.
    """
    root = mirror if mirror is not None else implied_mirror()
    folder = package_folder(root)
    note = None if mirror is not None else _user_note()
    if uninstall:
        return _remove(root, folder, note)
    folder.mkdir(parents=True, exist_ok=True)
    launcher = folder / f"terraform-provider-{NAME}_v{VERSION}"
    # Written beside and moved: a Terraform that runs now must not see half a file.
    fresh = folder.parent / ".launcher.new"
    fresh.write_bytes(files("leatstream_terraform").joinpath("data/launcher.sh").read_bytes())
    fresh.chmod(0o755)
    fresh.replace(launcher)
    for place in (folder.parent / "interpreter", *([note] if note else [])):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{sys.executable}\n", encoding="utf-8")
    return _told(root, folder, implied=mirror is None, dev=dev)


def _user_note() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "leatstream" / "interpreter"


def _remove(root: Path, folder: Path, note: Path | None) -> str:
    version = folder.parent
    if note is not None:
        note.unlink(missing_ok=True)
    if not version.is_dir():
        return f"leatstream {VERSION} is not installed in {root}."
    shutil.rmtree(version)
    # Only directories that are empty now; other providers in the mirror stay.
    for parent in (version.parent, version.parent.parent, version.parent.parent.parent):
        if parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()
    return f"Removed the leatstream provider {VERSION} from {root}."


def _told(root: Path, folder: Path, implied: bool, dev: bool) -> str:
    text = f"""Installed the leatstream provider {VERSION} in {root}.

terraform {{
  required_providers {{
    {NAME} = {{ source = "{ADDRESS}" }}
  }}
}}
"""
    if not implied:
        text += f"""
Terraform's CLI configuration must name this mirror:

provider_installation {{
  filesystem_mirror {{
    path    = "{root}"
    include = ["{HOST}/*/*"]
  }}
  direct {{
    exclude = ["{HOST}/*/*"]
  }}
}}
"""
    if dev:
        text += f"""
To work on the provider itself, put this into Terraform's CLI configuration instead; `terraform init` is not
needed:

provider_installation {{
  dev_overrides {{
    "{ADDRESS}" = "{folder}"
  }}
  direct {{}}
}}
"""
    return text
