"""Where the generated files of the provider lie, and how they are written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCHEMA = Path("provider-schema")
_DATA = SCHEMA / "leatstream_terraform" / "data"
_DOCS = SCHEMA / "docs"


def write_schema(openapi: dict[str, Any], root: Path) -> None:
    """Write ``provider.json`` and what the wheel carries: its copy and that of the descriptor set.

    Args:
        openapi: the service's OpenAPI document, with ``x-terraform`` hints.
        root: the repository.

    Raises:
        ValueError: the document's hints are incomplete.
    """
    from leatstream_terraform.generate import dumps, generate

    text = dumps(generate(openapi))
    (root / _DATA).mkdir(parents=True, exist_ok=True)
    for path in (SCHEMA / "provider.json", _DATA / "provider.json"):
        (root / path).write_text(text, encoding="utf-8")
    (root / _DATA / "protocol.binpb").write_bytes(
        (root / SCHEMA / "protocol" / "protocol.binpb").read_bytes()
    )


def write_docs(document: Mapping[str, Any], root: Path) -> None:
    """Write the pages of ``docs/`` and remove those that are no longer generated.

    Args:
        document: ``provider.json``.
        root: the repository.
    """
    from leatstream_terraform.docs import render

    pages = render(document)
    for path, text in pages.items():
        (root / _DOCS / path).parent.mkdir(parents=True, exist_ok=True)
        (root / _DOCS / path).write_text(text, encoding="utf-8")
    for page in (root / _DOCS).rglob("*.md"):
        if str(page.relative_to(root / _DOCS)) not in pages:
            page.unlink()
