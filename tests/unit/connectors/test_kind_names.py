"""Rules ask for capabilities: outside ``connectors``, ``dev`` and ``cli`` no code names a kind of store."""

from __future__ import annotations

import re
from pathlib import Path

from leatstream.connectors.registry import connector_classes

_ROOT = Path(__file__).parents[3]
_OWN = ("connectors", "dev", "cli")
# What warms a driver up is a real query, and the embedded stack has a Kafka.
_WARM_UP = "leatstream_jobs/driver/warmup.py"


def test_no_rule_names_a_kind() -> None:
    kinds = "|".join(connector_classes())
    named = re.compile(rf"""["']({kinds})["']""")
    package = _ROOT / "api" / "leatstream"
    files = [f for f in package.rglob("*.py") if f.relative_to(package).parts[0] not in _OWN]
    files += (_ROOT / "spark_jobs").rglob("*.py")
    assert len(files) > 300
    found = [
        f"{file.relative_to(_ROOT)}:{number}"
        for file in files
        if not file.as_posix().endswith(_WARM_UP)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if named.search(line)
    ]
    assert found == []
