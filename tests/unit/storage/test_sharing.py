"""The marks by which a server and a place of checkpoints are known again."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

from leatstream.storage.sharing import _kept, server_id


def test_a_server_is_known_again(tmp_path: Path) -> None:
    first = server_id(tmp_path)
    assert first.startswith("srv_")
    assert server_id(tmp_path) == first


def test_an_empty_mark_is_written_again(tmp_path: Path) -> None:
    """A crash, or a full disk, between making the file and writing it: each start was another server."""
    (tmp_path / "server.id").touch()
    first = server_id(tmp_path)
    assert server_id(tmp_path) == first


def test_of_two_that_start_at_once_one_makes_the_mark(tmp_path: Path) -> None:
    found: list[str] = []
    second = threading.Thread(target=lambda: found.append(_kept(tmp_path / ".place", "second")))
    with (tmp_path / ".place").open("a") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        second.start()
        second.join(0.1)  # it waits: the file is there, but nothing is in it yet
        first.write("first")
    second.join(10)
    assert found == ["first"]
