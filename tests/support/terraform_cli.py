"""Runs the real Terraform on a scratch configuration, with the provider in a scratch mirror."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from run_reaper import MARK

HEADER = """
terraform {
  required_providers {
    leatstream = { source = "leatstream.dev/leatstream/leatstream" }
  }
}
"""
_DEADLINE = 240


class TerraformError(AssertionError):
    """A Terraform command ended with an error; the text is what it printed."""


@dataclass
class Terraform:
    """One working directory.

    Attributes:
        binary: the ``terraform`` program.
        folder: working directory; ``main.tf`` is written there.
        cli_config: CLI configuration file that names the scratch mirror.
        url: address of the service, given by environment.
        token: token of the service, given by environment.
    """

    binary: str
    folder: Path
    cli_config: Path
    url: str
    token: str
    extra_env: dict[str, str] = field(default_factory=dict)

    def write(self, text: str, name: str = "main.tf") -> None:
        """Replace a configuration file; ``main.tf`` gets the provider requirement in front."""
        self.folder.mkdir(parents=True, exist_ok=True)
        head = HEADER if name == "main.tf" else ""
        (self.folder / name).write_text(head + text, encoding="utf-8")

    def run(self, *arguments: str, ok: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
        """Run one command; raises ``TerraformError`` with its output when the exit code is not expected."""
        done = subprocess.run(
            [self.binary, *arguments],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_DEADLINE,
            check=False,
        )
        if done.returncode not in ok:
            raise TerraformError(
                f"terraform {' '.join(arguments)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done

    def _environment(self) -> dict[str, str]:
        keep = ("PATH", "LANG", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", MARK)
        (self.folder.parent / "home").mkdir(exist_ok=True)
        return {name: os.environ[name] for name in keep if name in os.environ} | {
            "HOME": str(self.folder.parent / "home"),
            "TF_CLI_CONFIG_FILE": str(self.cli_config),
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
            "LEATSTREAM_URL": self.url,
            "LEATSTREAM_TOKEN": self.token,
            **self.extra_env,
        }

    def script(self, path: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script that finds ``terraform`` and ``leat`` on PATH; whatever its exit status is."""
        programs = self.folder.parent / "programs"
        programs.mkdir(exist_ok=True)
        for name, target in (("terraform", self.binary), ("leat", Path(sys.executable).with_name("leat"))):
            (programs / name).unlink(missing_ok=True)
            (programs / name).symlink_to(target)
        environment = self._environment()
        environment |= {"PATH": f"{programs}{os.pathsep}{environment['PATH']}", **variables}
        return subprocess.run(
            ["bash", path, *arguments],
            cwd=self.folder.parent,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_DEADLINE,
            check=False,
        )

    def init(self) -> None:
        """Make the folder ready; what a first one was given by Terraform is handed on to all others of the run."""
        kept = self.cli_config.parent / "initialized"
        if kept.exists():
            shutil.copytree(kept, self.folder, symlinks=True, dirs_exist_ok=True)
            return
        self.run("init", "-no-color")
        shutil.copytree(self.folder / ".terraform", kept / ".terraform", symlinks=True)
        shutil.copy(self.folder / ".terraform.lock.hcl", kept)

    def apply(self, *options: str) -> str:
        """Apply; returns what Terraform printed."""
        return self.run("apply", "-auto-approve", "-no-color", *options).stdout

    def destroy(self) -> str:
        return self.run("destroy", "-auto-approve", "-no-color").stdout

    def fails(self, *arguments: str) -> str:
        """Run a command that must fail; returns everything it printed, on one line with single spaces."""
        done = self.run(*arguments, "-no-color", ok=(1,))
        return " ".join((done.stdout + done.stderr).split())

    def plan(self, *options: str) -> Plan:
        """Plan and read the plan as JSON."""
        self.run("plan", "-no-color", "-out", "plan.bin", *options)
        return Plan(json.loads(self.run("show", "-json", "plan.bin").stdout))

    def is_settled(self) -> str:
        """Plan with exit codes; returns the plan's text, raises when anything would change."""
        done = self.run("plan", "-no-color", "-detailed-exitcode", ok=(0, 2))
        if done.returncode == 2:
            raise TerraformError(f"the plan is not empty:\n{done.stdout}")
        return done.stdout

    def state(self) -> dict[str, dict[str, Any]]:
        """Attribute values of every managed resource, by address."""
        document = json.loads(self.run("show", "-json").stdout)
        module = document.get("values", {}).get("root_module", {})
        return {one["address"]: one["values"] for one in module.get("resources", [])}

    def output(self, name: str) -> Any:
        """Value of an output."""
        return json.loads(self.run("output", "-json", name).stdout)

    def state_text(self) -> str:
        """The state file as it lies on disk."""
        return (self.folder / "terraform.tfstate").read_text(encoding="utf-8")


@dataclass
class Plan:
    """A plan as ``terraform show -json`` tells it."""

    document: Mapping[str, Any]

    def actions(self) -> dict[str, list[str]]:
        """What happens to each address; addresses that stay as they are left out."""
        found = {
            one["address"]: one["change"]["actions"] for one in self.document.get("resource_changes", [])
        }
        return {address: actions for address, actions in found.items() if actions != ["no-op"]}

    def change(self, address: str) -> Mapping[str, Any]:
        """The change of one address: before, after, after_unknown, replace_paths."""
        found: Mapping[str, Any] = next(
            one["change"] for one in self.document["resource_changes"] if one["address"] == address
        )
        return found

    def drifted(self) -> list[str]:
        """Addresses that were changed outside of Terraform."""
        return [one["address"] for one in self.document.get("resource_drift", [])]
