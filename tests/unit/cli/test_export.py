"""``leat export``: files in a folder, or text; nothing outside it, and nothing overwritten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

MAIN = {"path": "main.tf", "content": "terraform {}\n", "encoding": "text"}
BINARY = {"path": "descriptors/shop/messages.desc", "content": "AAEC", "encoding": "base64"}


def answer(*files: dict[str, str]) -> dict[str, Any]:
    return {"files": list(files), "variables": ["secret_a"], "notes": ["SQL has no comment for query q."]}


def test_files_are_written_once(service: Service, leat: Leat, tmp_path: Path) -> None:
    service.answer("GET", "/v1/catalog:export", answer(MAIN, BINARY))
    target = tmp_path / "new" / "folder"
    done = leat("export", "--format", "hcl", "-o", str(target), "demo", "store:k")
    assert done.status == 0, done.err
    assert dict(service.requests[-1].url.params.multi_items()) == {"format": "hcl", "name": "store:k"}
    assert service.requests[-1].url.params.get_list("name") == ["demo", "store:k"]
    assert (target / "main.tf").read_text() == "terraform {}\n"
    assert (target / BINARY["path"]).read_bytes() == b"\x00\x01\x02"
    assert "SQL has no comment" in done.err
    assert "secret_a" in done.err
    (target / "main.tf").write_text("mine")
    again = leat("export", "-o", str(target))
    assert (again.status, "exists" in again.err) == (2, True)
    assert (target / "main.tf").read_text() == "mine"


@pytest.mark.parametrize("path", ["../main.tf", "a/../../main.tf", "/main.tf"])
def test_a_path_that_leads_out_is_refused(service: Service, leat: Leat, tmp_path: Path, path: str) -> None:
    service.answer("GET", "/v1/catalog:export", answer(MAIN, MAIN | {"path": path}))
    done = leat("export", "-o", str(tmp_path / "here"))
    assert done.status == 2
    assert not list(tmp_path.rglob("*.tf"))


def test_text_is_printed(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/catalog:export", answer(MAIN, BINARY))
    done = leat("export")
    assert done.out == "terraform {}\n"
    assert "no text" in done.err
