"""How many requests one account may send: a bucket of tokens that fills again at a steady rate.

``loads.py`` bounds requests at a time; this one bounds fast requests, one after the other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from leatstream.errors import AccessError

BURST_SECONDS = 10.0  # of the rate, that an account which was quiet may send at once
_MANY = 1000  # buckets, before full ones are dropped


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Rates:
    """The buckets of this server, used by its event loop alone.

    Args:
        per_second: requests of one account; 0 = any number.
        now: the time in seconds.
    """

    def __init__(self, per_second: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._most = per_second, max(1.0, per_second * BURST_SECONDS)
        self._now = now
        self._buckets: dict[str, _Bucket] = {}

    def take(self, account: str) -> None:
        """Count a request; AccessError too-many-requests if the account has sent too many."""
        if self._rate <= 0:
            return
        now = self._now()
        bucket = self._buckets.get(account)
        if bucket is None:
            self._drop_full(now)
            bucket = self._buckets[account] = _Bucket(self._most, now)
        bucket.left = min(self._most, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.left < 1:
            raise self._refusal(1 - bucket.left)
        bucket.left -= 1

    def _refusal(self, missing: float) -> AccessError:
        error = AccessError(
            "too-many-requests",
            f"This account sends more than {self._rate:g} requests a second. Those of all its tokens count.",
            hint="Wait for Retry-After, ask for lists instead of single objects, or raise "
            "LEATSTREAM_REQUESTS_PER_SECOND.",
        )
        error.retry_after = max(1, math.ceil(missing / self._rate))
        return error

    def _drop_full(self, now: float) -> None:
        """Forget accounts that were quiet for so long that they count as new."""
        if len(self._buckets) < _MANY:
            return
        full_at = now - self._most / self._rate
        self._buckets = {name: one for name, one in self._buckets.items() if one.at > full_at}
