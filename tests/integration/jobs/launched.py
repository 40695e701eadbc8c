"""What every launcher must do, shown with real drivers that run a real query into Kafka, exactly once."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from small_api import SmallApi

from leatstream.engine.processes import DRIVER_MARK
from leatstream.ports import Launcher

ORPHAN_SECONDS = 6.0
SQL = "SELECT id, upper(name) AS name, __leat_rowkey, __leat_rowtime FROM leat_src_0"
COLUMNS, OUT = "id BIGINT NOT NULL, name VARCHAR", "id BIGINT, name VARCHAR"


class Place(ABC):
    """Somewhere drivers run, as a test sees it."""

    @abstractmethod
    def open(self, url: str) -> Launcher:
        """A launcher, as a server has it after its start."""

    @abstractmethod
    def shown(self, driver: str) -> str:
        """What others than the server may see of a driver that runs."""

    def kill(self, driver: str) -> None:
        """Kill its Python process, and it alone."""
        next(p for p in members(driver) if "leatstream_jobs" in p.cmdline()).kill()

    def busy(self) -> bool:
        """Whether a driver that runs a query uses what it should."""
        return True

    def remains(self, driver: str) -> list[Any]:
        """What there still is of a driver."""
        return list(members(driver))


class LauncherConformance:
    """The tests; a subclass gives the fixture ``place``."""

    def test_drivers_are_started_found_again_stopped_killed_and_end_alone(
        self,
        place: Place,
        job: Callable[..., dict[str, Any]],
        topic: Callable[..., str],
        produce: Callable[..., None],
        rows: Callable[..., list[Any]],
        eventually: Callable[..., Any],
    ) -> None:
        api = SmallApi()
        source, sink = topic(), topic()
        spec = job([{"entity": source, "columns": COLUMNS}], sink, SQL, OUT, delivery="exactly_once")
        spec |= {"query_id": sink}
        ids = [f"drv_{uuid.uuid4().hex[:12]}" for _ in range(3)]
        launcher = place.open(api.url)
        pids: dict[str, int] = {}

        def start(driver: str) -> None:
            api.tokens[driver] = uuid.uuid4().hex
            pids[driver] = launcher.start(driver, "dedicated", api.tokens[driver])

        def run(driver: str, attempt: int, numbers: range) -> None:
            api.give(driver, {"kind": "run", "spec": spec | {"attempt": attempt}})
            last = lambda: (api.beats.get(driver) or [{"state": ""}])[-1]["state"]  # noqa: E731
            api.wait(
                lambda: last() in ("running", "failed") or not alive(driver), 120, f"running of {driver}"
            )
            assert api.beats.get(driver), "it has ended before it ran anything"
            assert last() == "running", api.beats[driver][-1]
            produce(source, *({"id": i, "name": f"n{i}"} for i in numbers))

        def alive(driver: str) -> bool:
            return launcher.is_alive(driver, pids[driver])

        first, second, third = ids
        try:
            # It reports, runs a query, and is found by a server that has restarted.
            start(first)
            assert alive(first)
            run(first, 1, range(40))
            assert {r["id"] for r in rows(sink, 40)} == set(range(40))
            assert place.busy()
            assert api.tokens[first] not in place.shown(first)
            launcher = place.open(api.url)
            assert alive(first)

            # Rows are there before their batch is complete, and counted.
            counted = lambda: (api.beats[first][-1]["progress"] or {}).get("output_rows_total")  # noqa: E731
            api.wait(lambda: counted() == 40, 60, "the count of all rows")

            # Told to end, it stops its query in order.
            launcher.end(first, pids[first], grace=60)
            assert api.beats[first][-1]["state"] == "stopped"
            told = api.beats[first][-1]["progress"]
            assert told["output_rows_total"] == 40
            assert told["input_bytes_total"] > 40 * len('{"id": 1, "name": "n1"}') - 40, "wherever tasks run"
            assert told["output_bytes_total"] > 40 * len('{"id":1,"name":"N1"}')
            assert not alive(first)
            eventually(lambda: not place.remains(first), what="the end of all that the first had started")
            launcher.clear(first)
            assert "query q runs" in launcher.log(first), "its log outlives it"

            # Killed, it is known to be dead, and so is its JVM; another goes on from the checkpoint.
            start(second)
            start(third)
            api.wait(lambda: api.polls.get(third), 120, "the third's first report")
            place.kill(third)
            eventually(lambda: not alive(third), what="the third's death")
            launcher.end(third, pids[third], grace=0)
            launcher.end(third, pids[third], grace=0)
            eventually(lambda: not place.remains(third), what="the end of all that the third had started")
            launcher.clear(third)
            run(second, 2, range(40, 80))
            assert sorted(r["id"] for r in rows(sink, 80)) == list(range(80)), "exactly once"

            # Alone for too long, it ends by itself.
            api.close()
            eventually(lambda: not alive(second), what="the orphan's end")
            eventually(lambda: not place.remains(second), what="the end of all that the orphan had started")
            assert "the API has not answered" in launcher.log(second)
            launcher.clear(second)
        except BaseException:
            print("\n".join(launcher.log(driver)[-3000:] for driver in pids))
            raise
        finally:
            api.close()
            for driver, pid in pids.items():
                launcher.end(driver, pid, grace=0)


def members(driver: str) -> list[psutil.Process]:
    """Processes of this machine that a driver is or has started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(DRIVER_MARK) == driver:
                found.append(process)
        except psutil.Error:
            continue
    return found


def seen_in_processes(driver: str, files: Path) -> str:
    """Command lines and environments of a driver's processes, and the files it was started with."""
    seen = [repr((p.cmdline(), p.environ())) for p in members(driver)]
    assert seen
    return "\n".join([*seen, *(f.read_text() for f in files.glob("*.token"))])
