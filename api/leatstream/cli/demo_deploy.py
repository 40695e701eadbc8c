"""Deploys the example over several stores, for the demo: synthesize, init, plan, apply, destroy."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leatstream.dev.tools import Tool

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class DemoFailure(Exception):
    """A step did not do what it should; the text says which and why."""


def require_tools() -> tuple[Tool, Tool]:
    """Node.js and Terraform; DemoFailure naming what is missing."""
    from leatstream.dev.tools import find_node, find_terraform

    node, terraform = find_node(), find_terraform()
    missing = [name for name, tool in (("Node.js", node), ("Terraform", terraform)) if tool is None]
    if node is None or terraform is None:
        raise DemoFailure(f"{' and '.join(missing)} missing; `make tools` or `leat doctor` help.")
    return node, terraform


class Deployment:
    """The example, bound to one running stack."""

    def __init__(self, work: Path, ready: dict[str, Any]) -> None:
        """Find the tools.

        Args:
            work: directory for everything written.
            ready: the stack's ready file: url, token, kafka_bootstrap, kinesis_endpoint.

        Raises:
            DemoFailure: a tool or the example is not there.
        """
        from leatstream.dev import local_kinesis

        node, terraform = require_tools()
        self._work = work
        self._terraform = list(terraform.argv)
        self._program = work / "cdktf" / "main.py"
        self._program.parent.mkdir()
        # A copy: the example synthesizes beside itself, and the checkout shall stay as it is.
        shutil.copyfile(find_example(), self._program)
        self._env = {
            **os.environ,
            "LEATSTREAM_URL": ready["url"],
            "LEATSTREAM_TOKEN": ready["token"],
            "LEATSTREAM_KAFKA": ready["kafka_bootstrap"],
            "LEATSTREAM_KINESIS": ready["kinesis_endpoint"],
            "AWS_ACCESS_KEY_ID": local_kinesis.ACCESS_KEY_ID,
            "AWS_REGION": local_kinesis.REGION,
            "TF_VAR_secret_access_key": local_kinesis.SECRET_ACCESS_KEY,
            "CDKTF_OUTDIR": str(self._program.parent / "cdktf.out"),
            "JSII_NODE": str(node.executable),
            "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
            "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
            "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
            "TF_CLI_CONFIG_FILE": str(work / "terraform.rc"),
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "CHECKPOINT_DISABLE": "1",
        }

    @property
    def directory(self) -> Path:
        """Where the synthesized stack lies."""
        found = sorted((self._program.parent / "cdktf.out" / "stacks").glob("*/cdk.tf.json"))
        if len(found) != 1:
            raise DemoFailure(f"The example synthesized {len(found)} stacks, not one.")
        return found[0].parent

    def synthesize(self, **environment: str) -> None:
        """Run the example's program, with more in its environment."""
        self._run([sys.executable, str(self._program)], 120, "The synthesis", more=environment)

    def init(self) -> None:
        """Put the provider into a mirror of this run's own; Terraform looks there and nowhere else."""
        mirror = self._work / "mirror"
        install = [sys.executable, "-m", "leatstream_terraform", "install", "--mirror", str(mirror)]
        self._run(install, 60, "The installation of the provider")
        (self._work / "terraform.rc").write_text(
            f'provider_installation {{\n  filesystem_mirror {{\n    path = "{mirror}"\n  }}\n}}\n',
            encoding="utf-8",
        )
        self._run_terraform(["init", "-no-color"], 120)

    def plan_is_refused(self, *words: str) -> str:
        """Plan something that cannot be; returns Terraform's error, without its frame.

        Raises:
            DemoFailure: the plan was made, or its error lacks one of the words.
        """
        out = self._run_terraform(["plan", "-no-color"], 120, {1})
        lines = [line.strip("│╷╵ ") for line in out[out.find("Error:") :].splitlines()]
        error = "\n".join(line for line in lines if line)
        missing = [word for word in words if word not in error]
        if missing:
            raise DemoFailure(f"The refusal does not speak of {', '.join(missing)}:\n{error}")
        return error

    def apply(self) -> str:
        """Create everything; returns Terraform's closing line."""
        return _closing_line(self._run_terraform(["apply", "-auto-approve", "-no-color"], 300))

    def plan_is_empty(self) -> str:
        """Plan again; returns Terraform's line that says that nothing changes.

        Raises:
            DemoFailure: the plan has changes.
        """
        # Status 0: no changes, 2: changes.
        out = self._run_terraform(["plan", "-detailed-exitcode", "-no-color"], 120, {0, 2})
        if "No changes" not in out:
            raise DemoFailure(f"The second plan is not empty:\n{_last_lines(out, 60)}")
        return next((line for line in out.splitlines() if line.startswith("No changes")), "No changes.")

    def destroy(self) -> None:
        """Delete everything again."""
        self._run_terraform(["destroy", "-auto-approve", "-no-color"], 300)

    def _run_terraform(self, arguments: list[str], timeout: float, good: Container[int] = (0,)) -> str:
        command = [*self._terraform, f"-chdir={self.directory}", *arguments]
        return self._run(command, timeout, f"terraform {arguments[0]}", good)

    def _run(
        self,
        command: list[str],
        timeout: float,
        what: str,
        good: Container[int] = (0,),
        more: Mapping[str, str] | None = None,
    ) -> str:
        """Run to the end; its standard output.

        The command gets a process group of its own, so that nothing it started stays when it is ended.
        """
        process = subprocess.Popen(
            command,
            env={**self._env, **(more or {})},
            cwd=self._work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as late:
            raise DemoFailure(f"{what} was not done after {timeout:g} s.") from late
        finally:
            if process.poll() is None:
                _end_group(process)
        out = _ANSI.sub("", out)
        if process.returncode not in good:
            raise DemoFailure(f"{what} failed (status {process.returncode}):\n{_last_lines(out, 60)}")
        return out


def tail(log: Path, lines: int = 30) -> str:
    """The last lines of a log file."""
    try:
        return _last_lines(log.read_text(encoding="utf-8", errors="replace"), lines)
    except OSError:
        return "(no log)"


def _last_lines(text: str, lines: int) -> str:
    return "\n".join(text.rstrip().splitlines()[-lines:])


def _closing_line(out: str) -> str:
    lines = [line for line in out.splitlines() if line.startswith(("Apply complete", "Destroy complete"))]
    return lines[-1] if lines else ""


def _end_group(process: subprocess.Popen[str]) -> None:
    """Ask Terraform to stop in order (it then ends its provider), and make sure."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def find_example() -> Path:
    """The example's program: below the current directory, or in the checkout this package is run from.

    Raises:
        DemoFailure: it is in neither: the package holds no examples.
    """
    for root in (Path.cwd(), Path(__file__).resolve().parents[3]):
        program = root / "examples" / "multi-store" / "cdktf" / "main.py"
        if program.is_file():
            return program
    raise DemoFailure(
        "The demo deploys examples/multi-store, which is not here. Run it in a clone of the project, "
        "or start a stack of your own: leat dev."
    )
