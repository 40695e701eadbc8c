"""What the box at the end of a start says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from leatstream.dev.samples import SAMPLE_SQL

if TYPE_CHECKING:
    from leatstream.dev.stack import DevSettings

_WITHOUT_SAMPLE = "LIST STORES;"


def closing_words(settings: DevSettings, ready_file: Path, sample: bool) -> Text:
    """URL, where the token is (never the token itself), Kafka, SQL to begin with, how to stop."""
    stays = "nothing is kept" if settings.ephemeral else f"data stays in {settings.data_dir}"
    rows = (
        ("API", settings.url),
        ("Token", f"in {ready_file}"),
        ("Kafka", settings.kafka_bootstrap),
        *([("Kinesis", settings.kinesis_endpoint)] if settings.kinesis_endpoint else []),
        ("Logs", str(settings.log_dir)),
        ("Stop", f"Ctrl-C; {stays}"),
    )
    text = Text()
    for name, value in rows:
        text.append(f"{name:<8}", style="bold").append(f"{value}\n")
    text.append("\nTry it, in another terminal: leat sql\n", style="bold")
    return text.append(SAMPLE_SQL if sample else _WITHOUT_SAMPLE, style="cyan")
