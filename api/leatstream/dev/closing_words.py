"""What the box at the end of a start says."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from leatstream.dev.local_stores import LOCAL_STORES
from leatstream.dev.samples import SAMPLE_SQL

if TYPE_CHECKING:
    from leatstream.dev.stack import DevSettings

_WITHOUT_SAMPLE = "LIST STORES;"


def program() -> str:
    """How a person calls ``leat`` from here: a virtual environment that is not active is not on PATH."""
    own = Path(sys.executable).with_name("leat")
    if shutil.which("leat") or not own.exists():
        return "leat"
    return min(str(own), os.path.relpath(own), key=len)


def closing_words(settings: DevSettings, ready_file: Path, sample: bool) -> Text:
    """Addresses, where the token is (never the token itself), Kafka, SQL to begin with, how to stop."""
    stays = "nothing is kept" if settings.ephemeral else f"data stays in {settings.data_dir}"
    rows = (
        ("Console", f"{settings.url}/ui/"),
        ("API", settings.url),
        ("Token", f"in {ready_file}"),
        ("Kafka", settings.kafka_bootstrap),
        *((LOCAL_STORES[name].name, address) for name, address in settings.stores.items()),
        ("Logs", str(settings.log_dir)),
        ("Stop", f"Ctrl-C; {stays}"),
    )
    text = Text()
    for name, value in rows:
        text.append(f"{name:<11}", style="bold").append(f"{value}\n")
    text.append(f"\nTry it, in another terminal: {program()} sql\n", style="bold")
    return text.append(SAMPLE_SQL if sample else _WITHOUT_SAMPLE, style="cyan")
