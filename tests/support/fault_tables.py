"""The stores of tables in a fault run: an Iceberg REST catalog, ClickHouse and Snowflake, each behind a gate."""

from __future__ import annotations

import contextlib
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from clickhouse_server import PASSWORD as CLICKHOUSE_PASSWORD
from clickhouse_server import ClickHouseServer, clickhouse_server
from fault_aws import AwsPart, Gate
from fault_http import Proxy
from fault_load import BUCKET
from fault_parts import Part
from iceberg_server import SECRET, IcebergServer, iceberg_server
from lakes import file_access
from snowflake_server import SnowflakeServer, snowflake_server

from leatstream.dev.ports import LOOPBACK

NAMESPACE = "faults"
MOST = 3  # errors, or commits of a stranger, of one fault


class StorePart(Part):
    """A store that becomes unreachable, answers writes with errors, or does them and loses the answer.

    Attributes:
        port: for clients that are to feel it.
    """

    def __init__(self, name: str, target: int, writes: Callable[[str, str], bool]) -> None:
        self.name = name
        super().__init__()
        self.proxy = Proxy(target, writes)
        self._gate = Gate(self.proxy.port)
        self.port = self._gate.port

    def start(self) -> None:
        self._gate.open()

    def alive(self) -> bool:
        return self._gate.is_open

    def kill(self) -> None:
        self._gate.shut()

    def strike(self, down_for: float, pick: float = 0.0) -> str:
        """One of its faults; which, and how many errors, is of ``pick``."""
        ways = self.ways()
        way, rest = divmod(pick * len(ways), 1)
        name, how = list(ways.items())[int(way)]
        how(1 + int(rest * MOST), down_for)
        return name

    def ways(self) -> dict[str, Callable[[int, float], None]]:
        """Its faults by name."""
        return {"unreachable": self._unreachable, "refuses": self._refuse, "loses answers": self._lose}

    def _unreachable(self, _count: int, down_for: float) -> None:
        super().strike(down_for)

    def _refuse(self, count: int, _down_for: float) -> None:
        self.proxy.refused += count

    def _lose(self, count: int, _down_for: float) -> None:
        self.proxy.lost += count

    def close(self) -> None:
        """End it."""
        self.release()
        self._gate.shut()
        self.proxy.close()


class LakePart(StorePart):
    """A catalog in which somebody else may also commit to the query's table, right before the query does."""

    def __init__(self, server: IcebergServer) -> None:
        port = int(server.address.rpartition(":")[2])
        super().__init__("iceberg", port, lambda method, path: method == "POST" and "/tables/" in path)
        self._server, self._turn = server, threading.Lock()
        self._due = self.strange = 0
        server.before_commit = self._stranger

    def ways(self) -> dict[str, Callable[[int, float], None]]:
        return super().ways() | {"others commit": self._others}

    def _others(self, count: int, _down_for: float) -> None:
        with self._turn:
            self._due += count

    def _stranger(self) -> None:
        """Append a row with the next negative number, if one is due."""
        with self._turn:
            if not self._due:
                return
            self._due -= 1
            self.strange += 1
            table = self._server.catalog.load_table((NAMESPACE, "lake"))
            table.append(pa.table({"n": [-self.strange], "k": ["stranger"]}))

    def rows(self) -> Counter[Any]:
        """How often each number is in the table."""
        table = self._server.catalog.load_table((NAMESPACE, "lake"))
        return Counter(table.scan(selected_fields=("n",)).to_arrow()["n"].to_pylist())


@dataclass(frozen=True)
class Tables:
    """The three stores, and what is read in them past their gates."""

    lake: LakePart
    clickhouse: StorePart
    snowflake: StorePart
    lake_server: IcebergServer
    clickhouse_server: ClickHouseServer
    snowflake_server: SnowflakeServer

    @property
    def parts(self) -> tuple[StorePart, ...]:
        return (self.lake, self.clickhouse, self.snowflake)

    def stores(self) -> dict[str, dict[str, Any]]:
        """Bodies for REST by kind."""
        lake = self.lake_server.config(uri=f"http://{LOOPBACK}:{self.lake.port}", client_secret=SECRET)
        house = self.clickhouse_server.config(port=self.clickhouse.port, password=CLICKHOUSE_PASSWORD)
        flake = self.snowflake_server.config(host=f"http://{LOOPBACK}:{self.snowflake.port}")
        return {
            "iceberg_rest": lake,
            "clickhouse": house,
            "snowflake": flake | self.snowflake_server.secrets,
        }

    def clickhouse_rows(self) -> Counter[Any]:
        """How often each number is in ClickHouse's table."""
        found = self.clickhouse_server.rows("SELECT n, count() FROM shop.house GROUP BY n")
        return Counter({int(n): int(count) for n, count in found})

    def snowflake_rows(self) -> Counter[Any]:
        """How often each number is in Snowflake's table."""
        found = self.snowflake_server.run("SELECT n, count(*) FROM flake GROUP BY n")
        return Counter({int(n): int(count) for n, count in found})

    def totals(self) -> dict[str, dict[Any, Any]]:
        """Count and sum by key, in each store's table of a changelog."""
        lake = self.lake_server.catalog.load_table((NAMESPACE, "lake_totals")).scan().to_arrow().to_pylist()
        house = self.clickhouse_server.rows("SELECT k, c, s FROM shop.house_totals FINAL")
        flake = self.snowflake_server.run("SELECT k, c, s FROM flake_totals")
        rows = {"iceberg": [(row["k"], row["c"], row["s"]) for row in lake], "clickhouse": house}
        return {
            kind: {k: (int(c), int(s)) for k, c, s in found}
            for kind, found in (rows | {"snowflake": flake}).items()
        }


@contextlib.contextmanager
def fault_tables(aws: AwsPart) -> Iterator[Tables]:
    """Start the three; the files of the catalog's tables lie in the S3 that is struck too."""
    with (
        iceberg_server(f"s3://{BUCKET}/lake", file_access(aws.quiet_address)) as catalog,
        clickhouse_server() as house,
        snowflake_server() as account,
        contextlib.ExitStack() as opened,
    ):
        catalog.files = file_access(aws.address)
        posts = re.compile(r"/(?:\?|$)")
        lake = LakePart(catalog)
        parts = (
            lake,
            StorePart("clickhouse", house.port, lambda m, path: m == "POST" and bool(posts.match(path))),
            StorePart("snowflake", account.port, lambda m, path: m == "POST" and "query-request" in path),
        )
        for part in parts:
            opened.callback(part.close)
            part.open()
        yield Tables(lake, *parts[1:], catalog, house, account)
