"""Which command of Terraform has started the provider.

Before it plans to destroy, Terraform plans the whole configuration, only to read every object; an error of
that plan, such as a typo in one query, ends the command. No request separates the two plans: the
command does.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

_PROGRAMS = ("terraform", "tofu")
_FLAGS = ("destroy", "destroy=true", "destroy=1")


@cache
def is_destroy() -> bool:
    """Whether the command destroys everything in its state."""
    return destroys(_parent(), os.environ)


def destroys(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a command line of Terraform says so, with what TF_CLI_ARGS adds to it."""
    program = next(
        (at for at, one in enumerate(command) if any(name in Path(one).name for name in _PROGRAMS)), None
    )
    if program is None:
        return False
    given = list(command[program + 1 :])
    at = next((at for at, one in enumerate(given) if not one.startswith("-")), None)
    if at is None:
        return False
    verb = given[at]
    more = [environment.get(name, "") for name in ("TF_CLI_ARGS", f"TF_CLI_ARGS_{verb}")]
    flags = given[at + 1 :] + [one for text in more for one in _split(text)]
    return verb == "destroy" or (verb in ("plan", "apply") and any(_is_flag(one) for one in flags))


def _is_flag(text: str) -> bool:
    return text.startswith("-") and text.lstrip("-") in _FLAGS


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _parent() -> list[str]:
    """The command line of the process that has started this one; empty where it cannot be seen."""
    parent = os.getppid()
    try:
        raw = Path(f"/proc/{parent}/cmdline").read_bytes()
        return [one.decode(errors="replace") for one in raw.split(b"\0") if one]
    except OSError:
        pass
    try:
        done = subprocess.run(
            ["ps", "-o", "args=", "-p", str(parent)], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return _split(done.stdout)
