"""A running control plane without its REST face."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from leatstream.engine.driver_pool import DriverPool
from leatstream.engine.loop import ReconcileLoop
from leatstream.engine.standstill import StandstillWatch
from leatstream.errors import EngineError
from leatstream.services.environment import Environment
from leatstream.storage.announcements import Announcements


@dataclass(slots=True)
class Runtime:
    """What runs, and how it ends.

    Attributes:
        env: for the services.
        token: of the administrator; only ever in memory and in a 0600 file of the data directory.
    """

    env: Environment
    pool: DriverPool
    loop: ReconcileLoop
    watch: StandstillWatch
    token: str
    close_catalog: Callable[[], None]
    close_checkpoints: Callable[[], None]
    announcements: Announcements | None
    locks: list[IO[str]]
    stop_grace: float = 0.0

    def warm(self) -> bool:
        """Whether the analyzer and, if any are kept, a driver are warm."""
        return self.pool.ready() and self.pool.warm()

    def wait_warm(self, timeout: float) -> None:
        """Wait until the analyzer and a driver are warm; EngineError engine-unavailable after a while."""
        deadline = time.monotonic() + timeout
        seen = self.env.changed.value
        while not self.warm():
            if time.monotonic() > deadline:
                raise EngineError(
                    "engine-unavailable",
                    f"No Spark driver was warm after {timeout:.0f} s.",
                    hint=f"The drivers' logs are in {self.env.settings.log_dir}.",
                )
            seen = self.env.changed.wait(seen, 1.0)

    def end_drivers(self) -> frozenset[str]:
        """End the loop and every driver, each after its batch; the API must answer them meanwhile.

        Returns:
            Ids of the queries whose drivers could not be ended.
        """
        self.env.changed.end()
        self.watch.stop()  # no pass is made any more, and nobody is to wonder
        self.loop.stop()
        return self.pool.close(self.stop_grace)

    def close(self) -> None:
        """End the loop and every driver, let go of the queries, close the catalog's connections."""
        self.env.leases.close(self.end_drivers())
        if self.announcements is not None:
            self.announcements.close()
        self.close_checkpoints()
        self.close_catalog()
        for lock in self.locks:
            lock.close()
