"""``python -m leatstream_terraform``: what the launcher runs; with ``install``, what puts it there."""

from __future__ import annotations

import sys


def main(arguments: list[str]) -> int:
    """Serve Terraform, or install the provider; returns the process's exit code."""
    if arguments[:1] != ["install"]:
        from leatstream_terraform.server import serve

        return serve()
    import argparse
    from pathlib import Path

    from leatstream_terraform.install import InstallError, install

    parser = argparse.ArgumentParser(
        "leatstream_terraform install", description="Install the Terraform provider."
    )
    parser.add_argument(
        "--mirror", type=Path, help="a filesystem mirror; default: the one Terraform searches itself"
    )
    parser.add_argument("--dev", action="store_true", help="also show a dev_overrides block")
    parser.add_argument("--uninstall", action="store_true", help="remove the provider again")
    given = parser.parse_args(arguments[1:])
    try:
        print(install(given.mirror, given.dev, given.uninstall))
    except (InstallError, OSError) as problem:
        print(f"The provider could not be installed: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
