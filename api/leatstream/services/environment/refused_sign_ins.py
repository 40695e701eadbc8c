"""Which refused sign-ins become events of the audit log: so many that a flood cannot fill the catalog."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from leatstream.model.access import AuditEvent

WINDOW = 60.0  # seconds, in which an address and reason have one event
MOST = 20  # addresses and reasons of a window; the rest share one event
_REST = ("", "")


@dataclass(slots=True)
class _Window:
    """What came in a window after its first event, which was written at once."""

    began: float
    newest: AuditEvent | None = None
    count: int = 0


class RefusedSignIns:
    """Counts refused sign-ins by address and reason; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows: dict[tuple[str, str], _Window] = {}

    def take(self, event: AuditEvent, now: float) -> list[AuditEvent]:
        """The events to write now that this sign-in was refused.

        Args:
            event: of the sign-in.
            now: in seconds, by a clock that never goes back.
        """
        with self._lock:
            found = self._ended(now)
            key = (event.address or "", event.detail or event.code or "")
            if key not in self._windows and len(self._windows) >= MOST:
                nobody = replace(event, principal="", role="", token=None, address=None)
                key, event = _REST, replace(nobody, detail="Several addresses or reasons.")
            window = self._windows.get(key)
            if window is None:
                self._windows[key] = _Window(now)
                return [*found, event]
            window.newest, window.count = event, window.count + 1
            return found

    def waiting(self, now: float) -> list[AuditEvent]:
        """The events of windows that have ended.

        Args:
            now: as ``take``.
        """
        with self._lock:
            return self._ended(now)

    def _ended(self, now: float) -> list[AuditEvent]:
        found = []
        for key, window in list(self._windows.items()):
            if now - window.began < WINDOW:
                continue
            if window.newest is None:
                del self._windows[key]
            else:
                found.append(replace(window.newest, count=window.count))
                self._windows[key] = _Window(now)
        return found
