"""The file of Spark's classes that drivers begin with: where it lies, and that it is made once.

It holds what a JVM otherwise reads, checks and lays out at each start
(``leatstream_jobs.driver.class_archive``).
Drivers do without while it is not there, so nobody waits for it: it is made behind a running server, at the
lowest priority.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from leatstream.dev.cache import cache_dir, exclusive
from leatstream.dev.child import Child
from leatstream.dev.java import Java

_log = logging.getLogger(__name__)
VARIABLE = "LEATSTREAM_CLASS_ARCHIVE"
_MAKER = (sys.executable, "-m", "leatstream_jobs.driver.class_archive")
_MAKE_SECONDS = 600.0  # it is half a minute of CPU, but others go first
_LOOK = 0.2
_KEPT = 3  # other installations of this user have their own; each has 150 MB


def archive_path(java: Java) -> Path:
    """Where the archive for this Java and this PySpark lies; whether it is there is another question.

    A JVM refuses an archive of another build or of other jars, so their marks are in the name.
    """
    mark = hashlib.sha256()
    for file in sorted(_origins(java)):
        with contextlib.suppress(OSError):
            found = file.stat()
            # Whole seconds: the layers of an image keep no more.
            mark.update(f"{file}\0{found.st_size}\0{int(found.st_mtime)}\0".encode())
    return cache_dir() / "classes" / f"{mark.hexdigest()[:24]}.jsa"


def _origins(java: Java) -> Iterator[Path]:
    yield java.executable.resolve()
    home = java.executable.resolve().parents[1]
    yield from (home / "release", home / "lib" / "modules")
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        yield from (Path(spec.origin).resolve().parent / "jars").glob("*.jar")


class ClassArchive:
    """The archive of one installation.

    Attributes:
        path: where it lies, or will lie. Empty where this Java cannot write one.
    """

    def __init__(self, java: Java, environment: Mapping[str, str]) -> None:
        """Describe it; nothing happens yet.

        Args:
            java: that drivers use.
            environment: of drivers: Java and jars. No secrets.
        """
        self.path = archive_path(java)
        self._environment = dict(environment)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def make(self, niceness: int = 0) -> bool:
        """Make it if it is not there, and wait for that; whether it is there then.

        Another process that makes the same is waited for.

        Args:
            niceness: 0 to 19, how far other processes go first.
        """
        with exclusive("classes", self._ended) as held:
            if held and not self.path.exists():
                self.path.parent.mkdir(mode=0o700, exist_ok=True)
                for torn in self.path.parent.glob("*.part"):  # of one that was cut off
                    torn.unlink()
                self._run(niceness)
        return self.path.exists()

    def make_behind(self, ready: Callable[[], bool]) -> None:
        """Make it in the background if it is not there; ``close`` ends that.

        Args:
            ready: whether the first drivers are warm, which nothing may delay.
        """
        if self.path.exists():
            return
        self._thread = threading.Thread(target=self._behind, args=(ready,), name="classes", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Give up what is being made."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(10)

    def _behind(self, ready: Callable[[], bool]) -> None:
        while not ready():
            if self._ended.wait(_LOOK):
                return
        try:
            self.make(niceness=19)
        except OSError as error:  # such as a cache that cannot be written to
            _log.info("drivers start without an archive of classes: %s", error)

    def _run(self, niceness: int) -> None:
        argv = ["nice", "-n", str(niceness), *_MAKER, str(self.path)]
        own = {k: v for k, v in os.environ.items() if not k.startswith("LEATSTREAM_")}
        log = self.path.with_suffix(".log")
        child = Child(argv, log, env=own | self._environment)
        try:
            for _ in range(int(_MAKE_SECONDS / _LOOK)):
                if child.exit_status is not None or self._ended.wait(_LOOK):
                    break
        finally:
            child.stop()
        if self.path.exists():
            log.unlink(missing_ok=True)
            _forget_old(self.path.parent)
        elif not self._ended.is_set():
            _log.warning("no archive of classes could be made, drivers start slower; see %s", log)


def _forget_old(directory: Path) -> None:
    files = sorted(directory.glob("*.jsa"), key=lambda file: file.stat().st_mtime)
    for old in files[:-_KEPT]:
        old.unlink(missing_ok=True)
