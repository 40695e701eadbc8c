"""One line on the terminal that says what is waited for, and for how long; nothing in pipes and scripts."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType

from leatstream.cli.output import printable

_FIRST = 0.4  # seconds; what is answered at once is not announced
_TICK = 1.0
_CLEAR = "\r\x1b[2K"


class WaitLine:
    """Shown on standard error while the ``with`` block waits, and gone behind it.

    Attributes:
        text: what is waited for; may change at any time.
        shown: whether there is a terminal to show it on.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.shown = sys.stderr.isatty()
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wait line", daemon=True)

    def __enter__(self) -> WaitLine:
        if self.shown:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Remove the line; it does not come again."""
        if self._thread.is_alive():
            self._over.set()
            self._thread.join()

    def _run(self) -> None:
        pause, drawn = _FIRST, False
        while not self._over.wait(pause):
            pause, drawn = _TICK, True
            self._draw(f"{self.text}, {time.monotonic() - self._began:.0f} s")
        if drawn:
            self._draw("")

    def _draw(self, text: str) -> None:
        width = max(10, shutil.get_terminal_size().columns - 1)
        plain = " ".join(printable(text).split())
        sys.stderr.write(_CLEAR + (plain if len(plain) <= width else plain[: width - 1] + "…"))
        sys.stderr.flush()
