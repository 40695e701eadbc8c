from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from deadlines import patient

from leatstream.dev import class_archive
from leatstream.dev.cache import exclusive
from leatstream.dev.class_archive import ClassArchive, archive_path
from leatstream.dev.java import Java

Program = Callable[..., Path]


@pytest.fixture
def java(tmp_path: Path) -> Java:
    executable = tmp_path / "jdk" / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text("17.0.1")
    return Java(tmp_path / "jdk", executable, 17, "PATH")


@pytest.fixture
def maker(program: Program, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have archives be made by a shell body; ``$1`` is the file."""

    def use(body: str) -> None:
        monkeypatch.setattr(class_archive, "_MAKER", (str(program("maker", "make", body)),))

    return use


def test_another_java_has_another_archive(java: Java) -> None:
    first = archive_path(java)
    assert archive_path(java) == first
    java.executable.write_text("17.0.11")
    assert archive_path(java) != first


def test_an_image_keeps_whole_seconds_and_the_archive_still_fits(java: Java) -> None:
    os.utime(java.executable, ns=(1_700_000_000_123_456_789,) * 2)
    built = archive_path(java)
    os.utime(java.executable, (1_700_000_000,) * 2)
    assert archive_path(java) == built


def test_nobody_waits_for_another_that_makes_it(java: Java, maker: Callable[[str], None]) -> None:
    maker('printf made > "$1"')
    archive, asked = ClassArchive(java, {}), threading.Event()

    def ready() -> bool:
        asked.set()
        return True

    with exclusive("classes"):
        archive.make_behind(ready)
        assert asked.wait(30)
        archive.close()
        assert "classes" not in [thread.name for thread in threading.enumerate()]
    assert not archive.path.exists()


def test_it_is_made_once_with_the_drivers_environment_and_torn_ones_go(
    java: Java, maker: Callable[[str], None]
) -> None:
    archive = ClassArchive(java, {"PLACE": "of the drivers"})
    torn = archive.path.with_suffix(".77.part")
    torn.parent.mkdir()
    torn.touch()
    maker('printf "%s" "$PLACE" > "$1"')
    assert archive.make()
    assert archive.path.read_text() == "of the drivers"
    assert list(archive.path.parent.iterdir()) == [archive.path]
    maker('printf again > "$1"')
    assert archive.make()
    assert archive.path.read_text() == "of the drivers"


def test_a_maker_that_fails_leaves_its_words_and_no_archive(
    java: Java, maker: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    maker("echo 'no room left' >&2; exit 1")
    archive = ClassArchive(java, {})
    assert not archive.make()
    log = archive.path.with_suffix(".log")
    assert "no room left" in log.read_text()
    assert str(log) in caplog.text


def test_behind_a_server_it_waits_until_that_is_ready_and_its_end_ends_it(
    java: Java, maker: Callable[[str], None], tmp_path: Path
) -> None:
    began, asked, ready = tmp_path / "began", threading.Event(), threading.Event()
    maker(f"touch {began}; exec sleep 600")
    archive = ClassArchive(java, {})

    def look() -> bool:
        asked.set()
        return ready.is_set()

    archive.make_behind(look)
    assert asked.wait(30)
    assert not began.exists()
    ready.set()
    deadline = time.monotonic() + patient(30)
    while not began.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    archive.close()
    assert "classes" not in [thread.name for thread in threading.enumerate()]
    assert not archive.path.exists()
