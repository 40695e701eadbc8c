"""``python -m leatstream_jobs``: one driver process. Its calls to the API are in protocol.py."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, take the token out of sight, and live."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    try:
        token = options.token_file.read_text(encoding="utf-8").strip()
        options.token_file.unlink()
    except OSError as error:
        print(
            f"leatstream_jobs: the token file cannot be read and removed: {error.strerror}", file=sys.stderr
        )
        return 2

    from leatstream_jobs.driver.loop import Driver
    from leatstream_jobs.driver.shared_driver import SharedDriver
    from leatstream_jobs.runtime.protocol import Client, Contact, HttpTransport

    made = options.work_dir is None
    work_dir = Path(tempfile.mkdtemp(prefix="leat-driver-")) if made else options.work_dir.resolve()
    work_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    contact = Contact(options.orphan_seconds)
    client = Client(HttpTransport(options.url_file, token), options.driver_id, contact)
    driver = (SharedDriver if options.role == "shared" else Driver)(
        client,
        role=options.role,
        slots=options.slots,
        work_dir=work_dir,
        warm_up_kafka=options.warm_up_kafka,
        stop_seconds=options.stop_seconds,
    )
    try:
        return driver.run()
    finally:
        if made:
            shutil.rmtree(work_dir, ignore_errors=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="leatstream_jobs", description="Runs one query, several, or analyzes SQL."
    )
    parser.add_argument("--driver-id", required=True)
    parser.add_argument(
        "--url-file", required=True, type=Path, help="holds the API's address; read again when lost"
    )
    parser.add_argument(
        "--token-file", required=True, type=Path, help="holds the driver's token; removed at once"
    )
    parser.add_argument("--role", required=True, choices=("dedicated", "shared", "analyzer"))
    parser.add_argument("--slots", type=int, default=8, help="tasks at once")
    parser.add_argument("--warm-up-kafka", help="host:port of a broker for warm-up topics")
    parser.add_argument("--work-dir", type=Path, help="directory of its own; a temporary one when not given")
    parser.add_argument(
        "--orphan-seconds", type=float, default=120.0, help="end after so long without the API"
    )
    parser.add_argument(
        "--stop-seconds", type=float, default=0.0, help="how long a batch may take to end after SIGTERM"
    )
    return parser


def _end_process(code: int) -> None:
    """End now: the JVM ends with our side of its standard input; its shutdown need not be waited for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _end_process(main())
