"""The statements of ClickHouse's materialized views: each version's rows, and the view over one of them."""

from __future__ import annotations

import pytest

from leatstream.connectors.clickhouse.views import rows_entity, rows_statement, view_statement
from leatstream.connectors.entities import StoredView
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

COLUMNS = (Column("user id", parse_type("BIGINT")), Column("n", parse_type("VARCHAR"), not_null=True))
VERSION = "qry_019c3f5a1b2c00112233445566778899aabb"


def test_each_version_has_a_table_of_its_own() -> None:
    assert rows_entity("sales.v") == "sales.v_rows"
    assert rows_entity("sales.v", VERSION) == "sales.v_rows_8899aabb"


@pytest.mark.parametrize(
    ("view", "rows", "shown"),
    [
        (
            StoredView("v", COLUMNS),
            "`home`.`v_rows` (`user id` Nullable(Int64), `n` String, _leat_time DateTime64(6, 'UTC')"
            " DEFAULT now64(6)) ENGINE = MergeTree ORDER BY tuple()"
            " SETTINGS non_replicated_deduplication_window = 1000",
            "`home`.`v` AS SELECT `user id`, `n` FROM `home`.`v_rows` AS rows",
        ),
        (
            StoredView("sales.v", COLUMNS, ("n",), 1500, VERSION),
            "`sales`.`v_rows_8899aabb` (`user id` Nullable(Int64), `n` String, _leat_time DateTime64(6, 'UTC')"
            " DEFAULT now64(6), _leat_version UInt64, _leat_deleted UInt8)"
            " ENGINE = ReplacingMergeTree(_leat_version, _leat_deleted) ORDER BY (`n`)"
            " TTL toDateTime(_leat_time) + toIntervalSecond(2) SETTINGS allow_nullable_key = 1",
            "`sales`.`v` AS SELECT `user id`, `n` FROM `sales`.`v_rows_8899aabb` AS rows FINAL"
            " WHERE _leat_time > now64(6) - toIntervalMillisecond(1500)",
        ),
    ],
)
def test_rows_and_the_view_over_them(view: StoredView, rows: str, shown: str) -> None:
    assert rows_statement(view, "home") == f"CREATE TABLE IF NOT EXISTS {rows}"
    comment = " COMMENT 'A materialized view of leatstream'"
    assert view_statement(view, "home") == f"CREATE OR REPLACE VIEW {shown}{comment}"
    other = view_statement(view, "home", "`a`.`b`")
    assert other.startswith("CREATE OR REPLACE VIEW `a`.`b` AS SELECT ")
