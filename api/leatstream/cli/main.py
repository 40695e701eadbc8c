"""Entry point of ``leat``. Nothing heavy is imported before it is known what to do."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with one of ``exits.Exit``."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from leatstream import __version__

        print(f"leat {__version__}")
        return
    from leatstream.cli.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
