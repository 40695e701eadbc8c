"""What access control costs: one check, and pages of what a role sees among many relations.

    python bench/access.py [relations] [grants]

Prints the median and the 99th percentile in milliseconds. Nothing but a catalog in SQLite is started.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leatstream.model.access import Grant, Privilege, Role, Target
from leatstream.model.names import Fqn
from leatstream.model.objects import Meta, Relation, RelationKind
from leatstream.services.environment import Principal
from leatstream.services.environment.authorization import rights_in
from leatstream.services.environment.visible import VisibleUnit
from leatstream.storage.migrate import migrate
from leatstream.storage.unit_of_work import open_units

REPEATS = 200


def main(relations: int, grants: int) -> None:
    """Fill a catalog and measure."""
    name = f"db.public.r{relations - 1:06}"
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{Path(directory) / 'catalog.db'}"
        migrate(url)
        units = open_units(url)
        with units() as unit:
            for number in range(relations):
                unit.relations.add(_relation(number))
            step = max(1, relations // grants)
            unit.roles.add(_role("many", [_select(n * step) for n in range(grants)]))
            unit.roles.add(_role("few", [_select(relations - 1)]))
            unit.commit()
        with units(write=False) as unit:
            _measure("effective rights of a role", lambda: rights_in(unit, "many"), repeats=20)
            for role in ("many", "few"):
                rights = rights_in(unit, role)
                _measure(f"one check, {role}", lambda r=rights: r.may(Privilege.SELECT, "relation", name))
                seen: Any = VisibleUnit(unit, Principal("ann", role, rights))
                _measure(f"page of 100, {role}", lambda s=seen: s.relations.page(limit=100))
        units.close()


def _measure(what: str, work: Callable[[], object], repeats: int = REPEATS) -> None:
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
    taken.sort()
    print(f"{what:28} p50 {statistics.median(taken):8.3f} ms   p99 {taken[int(repeats * 0.99) - 1]:8.3f} ms")


def _meta(name: str) -> Meta:
    now = datetime.now(UTC)
    return Meta(id=name, generation=1, created_at=now, updated_at=now, created_by="ann", owner="sysadmin")


def _relation(number: int) -> Relation:
    name = f"r{number:06}"
    return Relation(
        meta=_meta(name),
        fqn=Fqn("db", "public", name),
        kind=RelationKind.STREAM,
        columns=(),
        store="k",
        entity=name,
        value_format="json",
    )


def _select(number: int) -> Grant:
    return Grant(Privilege.SELECT, Target("relation", f"db.public.r{number:06}"))


def _role(name: str, grants: list[Grant]) -> Role:
    return Role(meta=_meta(name), name=name, grants=tuple(grants))


if __name__ == "__main__":
    main(*(int(one) for one in (*sys.argv[1:], *("10000", "5000")[len(sys.argv) - 1 :])))
