"""Deadlines in proportion to how busy the machine is: no test depends on an idle one."""

from __future__ import annotations

import os

_MOST = 3.0


def patient(seconds: float) -> float:
    """Seconds to wait for what takes at most ``seconds`` on an idle machine; up to three times that.

    The factor is the load per processor, as averaged by the kernel over the last minute.
    """
    return seconds * min(_MOST, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
