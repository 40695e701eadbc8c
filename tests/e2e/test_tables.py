"""Tables from statement to rows: orders priced by a table of PostgreSQL, and written into another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from postgres_server import PASSWORD, PostgresServer

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]


def test_orders_are_priced_by_a_table_and_kept_in_another(
    play: Any, postgres: PostgresServer, eventually: Callable[..., Any]
) -> None:
    def do(text: str) -> Any:
        with postgres.connect() as connection:
            found = connection.execute(text.format(s=play.name))
            return found.fetchall() if found.description else None

    do(
        "CREATE SCHEMA {s}; CREATE TABLE {s}.prices (item text PRIMARY KEY, price numeric(10,2) NOT NULL);"
        "INSERT INTO {s}.prices VALUES ('lamp', 12.50), ('chair', 99);"
        "CREATE TABLE {s}.totals (item varchar(40) PRIMARY KEY, n bigint);"
        "GRANT ALL ON SCHEMA {s} TO shop; GRANT ALL ON ALL TABLES IN SCHEMA {s} TO shop"
    )
    orders = play.stream("orders", "id BIGINT, item VARCHAR, n INTEGER")
    play.sql(
        f"CREATE STORE {play.name}_pg WITH ('type'=POSTGRESQL, 'uris'='postgresql://127.0.0.1:{postgres.port}/shop',"
        f" 'tls.disabled'=TRUE, 'postgres.username'='shop', 'postgres.password'='{PASSWORD}')"
    )
    place = f"'store'='{play.name}_pg', 'postgresql.schema.name'='{play.name}'"
    play.sql(
        f"CREATE TABLE prices WITH ({place});"
        f"CREATE TABLE totals (item VARCHAR, n BIGINT, PRIMARY KEY (item)) WITH ({place})"
    )
    out = play.topic("priced")
    select = "SELECT o.id, o.item, o.n * p.price AS total FROM orders o LEFT JOIN prices p ON o.item = p.item"
    made = play.run("priced", f"CREATE STREAM priced WITH ('topic'='{out}') AS {select}", shared=True)
    assert made["status"]["state"] == "running", made["status"]
    assert made["plan"]["joins"][0]["kind"] == "lookup-join-stream-table"
    kept = play.run(
        "totals",
        "INSERT INTO totals SELECT item, sum(n) AS n FROM orders WHERE item IS NOT NULL GROUP BY item",
        shared=True,
    )
    assert (kept["plan"]["sink"]["kind"], kept["plan"]["sink"]["primary_key"]) == ("table", ["item"])
    copied = play.run("kept", f"CREATE TABLE kept WITH ({place}) AS SELECT id, item FROM orders", shared=True)
    assert copied["plan"]["sink"]["entity_action"] == "create"

    def order(id_: int, item: str | None, n: int) -> dict[str, Any]:
        return {"id": id_, "item": item, "n": n}

    play.produce(orders, [order(1, "lamp", 2), order(2, "desk", 1), order(3, None, 1)])
    first = {r["id"]: r["total"] for r in play.consume(out, 3, distinct="id")}
    assert first == {1: 25.0, 2: None, 3: None}
    do("UPDATE {s}.prices SET price = 20 WHERE item = 'lamp'; INSERT INTO {s}.prices VALUES ('desk', 5)")
    # The query stops and goes on with what came meanwhile, and with the table as it is then.
    play.sql(f"TERMINATE QUERY {play.name}_priced")
    play.wait(f"{play.name}_priced", "stopped")
    play.produce(orders, [order(4, "lamp", 1), order(5, "desk", 3)])
    play.sql(f"RESTART QUERY {play.name}_priced")
    all_ = {r["id"]: r["total"] for r in play.consume(out, 5, distinct="id")}
    assert all_ == first | {4: 20.0, 5: 15.0}
    wanted = [("desk", 4), ("lamp", 3)]
    text = "SELECT item, n FROM {s}.totals ORDER BY 1"
    eventually(lambda: do(text) == wanted, 60, "the totals")
    eventually(
        lambda: do("SELECT id FROM {s}.kept ORDER BY 1") == [(i,) for i in range(1, 6)], 60, "the rows"
    )
    rows = play.query(f"{play.name}_priced")
    assert PASSWORD not in str(rows)
