"""Where Python's workers and the JVM talk to each other."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from leatstream_jobs.runtime.session import _unix_sockets


def test_a_socket_fits_however_long_the_directory_is(tmp_path: Path) -> None:
    work_dir = tmp_path / ("a" * 100) / ("b" * 100)
    work_dir.mkdir(parents=True)
    found = _unix_sockets(work_dir)
    assert found["spark.python.unix.domain.socket.enabled"] == "true"
    path = found["spark.python.unix.domain.socket.dir"] + "/.3b4e6f0a-7a8b-4f1c-9d2e-5f6a7b8c9d0e.sock"
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path)
    assert [name for name in os.listdir(work_dir / "sockets") if name.endswith(".sock")]
    assert not (work_dir / "sockets" / "probe").exists()


def test_nobody_else_reaches_them(tmp_path: Path) -> None:
    _unix_sockets(tmp_path)
    assert (tmp_path / "sockets").stat().st_mode & 0o077 == 0


def test_tcp_stays_where_the_volume_holds_no_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoSockets(socket.socket):
        def bind(self, address: Any, /) -> None:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr("leatstream_jobs.runtime.session.socket.socket", NoSockets)
    assert _unix_sockets(tmp_path) == {}
