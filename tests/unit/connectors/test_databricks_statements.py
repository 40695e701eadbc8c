"""What is sent to a SQL warehouse, and what is made of its refusals."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leatstream.connectors.databricks.admin import managed_table
from leatstream.connectors.databricks.connector import DatabricksConnector
from leatstream.connectors.databricks.errors import refused_statement
from leatstream.connectors.databricks.staging import (
    StagedColumn,
    copy_statement,
    merge_statement,
    write_file,
)
from leatstream.connectors.entities import Table
from leatstream.connectors.registry import open_connector
from leatstream.model.objects import Column
from leatstream.model.types import parse_type

COLUMNS = (StagedColumn("id", "BIGINT", "decimal(20,0)"), StagedColumn("a`b", "VARCHAR", "string"))
TABLE = "`main`.`shop`.`o``rders`"


def column(name: str, kind: str, **more: Any) -> Column:
    return Column(name, parse_type(kind), **more)


def test_a_managed_table_is_made_with_its_key_and_clustered_by_it() -> None:
    columns = [
        column("id", "BIGINT", comment="it's \\ a key"),
        column("blob", "BYTES"),
        column("a`b", "STRUCT<x VARCHAR>", not_null=True),
    ]
    assert managed_table(["main", "shop", "o`rders"], columns, ["id", "blob"]) == (
        f"CREATE TABLE {TABLE} (`id` BIGINT NOT NULL COMMENT 'it\\'s \\\\ a key', `blob` BINARY NOT NULL,"
        " `a``b` STRUCT<`x`: STRING> NOT NULL, CONSTRAINT `o``rders_pk` PRIMARY KEY (`id`, `blob`))"
        " USING DELTA CLUSTER BY (`id`) COMMENT 'Made by leatstream.'"
    )
    plain = managed_table(["main", "shop", "t"], [column("id", "BIGINT")], [])
    assert plain == "CREATE TABLE `main`.`shop`.`t` (`id` BIGINT) USING DELTA COMMENT 'Made by leatstream.'"


def test_rows_without_a_key_are_copied() -> None:
    assert copy_statement(TABLE, "/Volumes/a/b/c/rows", "g1-00000007.parquet", COLUMNS) == (
        f"COPY INTO {TABLE} FROM (SELECT CAST(c0 AS decimal(20,0)) AS `id`, CAST(c1 AS string) AS `a``b`"
        " FROM '/Volumes/a/b/c/rows') FILEFORMAT = PARQUET FILES = ('g1-00000007.parquet')"
    )


def test_rows_with_a_key_are_merged() -> None:
    assert merge_statement(TABLE, "/Volumes/a/b/c/x.parquet", COLUMNS, ["id"]) == (
        f"MERGE INTO {TABLE} t USING (SELECT CAST(c0 AS decimal(20,0)) AS `id`, CAST(c1 AS string) AS `a``b`,"
        " leat_deleted FROM parquet.`/Volumes/a/b/c/x.parquet` QUALIFY row_number() OVER"
        " (PARTITION BY c0 ORDER BY leat_number DESC) = 1) s ON t.`id` = s.`id`"
        " WHEN MATCHED AND s.leat_deleted THEN DELETE WHEN MATCHED THEN UPDATE SET t.`a``b` = s.`a``b`"
        " WHEN NOT MATCHED AND NOT s.leat_deleted THEN INSERT (`id`, `a``b`) VALUES (s.`id`, s.`a``b`)"
    )
    assert "UPDATE" not in merge_statement(TABLE, "/Volumes/a/b/c/x.parquet", COLUMNS, ["id", "a`b"])


def test_a_staged_file_has_the_rows_in_their_order(tmp_path: Path) -> None:
    columns = (StagedColumn("at", "TIMESTAMP", "timestamp_ntz"), StagedColumn("n", "SMALLINT", "smallint"))
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)
    batches = [
        pa.record_batch([pa.array([moment, None]), pa.array([n, None], pa.int32()), pa.array([False, True])], list("xyz"))
        for n in (1, 2)
    ]  # fmt: skip
    assert write_file(tmp_path / "f", columns, iter(batches)) == 4
    found = pq.read_table(tmp_path / "f")
    assert found.column_names == ["c0", "c1", "leat_deleted", "leat_number"]
    assert found.schema.field("c0").type == pa.timestamp("us")
    assert found.schema.field("c1").type == pa.int16()
    assert found.column("c1").to_pylist() == [1, None, 2, None]
    assert found.column("leat_number").to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ("[CAST_INVALID_INPUT] The value 'sesame' …", "store-rejected", "(CAST_INVALID_INPUT)"),
        ("[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK x: sesame", "store-rejected", "breaks a constraint"),
        ("[INSUFFICIENT_PERMISSIONS] User sesame …", "store-auth-failed", "is not allowed"),
        ("[TABLE_OR_VIEW_NOT_FOUND] The table sesame", "store-rejected", "it is gone"),
        ("[SOMETHING.NEW] sesame", "store-rejected", "was refused: SOMETHING.NEW."),
        ("sesame", "store-rejected", "no reason"),
    ],
)
def test_refusals_about_rows_quote_no_value(said: str, code: str, words: str) -> None:
    error = refused_statement("s", "writing to table t", said, rows=True)
    assert error.code == code
    assert words in error.detail
    assert "sesame" not in str(error)


def test_refusals_of_other_statements_are_quoted() -> None:
    error = refused_statement("s", "creating table t", "[X] No such schema.\nmore", rows=False)
    assert error.detail == "Store s: creating table t was refused: [X] No such schema."


def test_what_may_be_repeated() -> None:
    for condition, conflict, file in (
        ("DELTA_CONCURRENT_APPEND.WITHOUT_HINT", True, False),
        ("DELTA_METADATA_CHANGED", True, False),
        ("PATH_NOT_FOUND", False, True),
        ("FAILED_READ_FILE.FILE_NOT_EXIST", False, True),
        ("PARSE_SYNTAX_ERROR", False, False),
    ):
        error = refused_statement("s", "writing", f"[{condition}] …", rows=True)
        assert (error.is_conflict, error.lacks_file) == (conflict, file), condition


@pytest.mark.parametrize(
    ("settings", "kind", "form", "words"),
    [
        ({"volume": "/Volumes/a/b/c"}, "MANAGED", "DELTA", ""),
        ({"volume": "/Volumes/a/b/c"}, "EXTERNAL", "DELTA", ""),
        ({"s3": {"bucket": "acme-lake", "region": "eu-west-1"}}, "EXTERNAL", "DELTA", ""),
        ({"s3": {"bucket": "acme-lake", "region": "eu-west-1"}}, "MANAGED", "DELTA", "names no volume"),
        ({}, "EXTERNAL", "DELTA", "neither the bucket"),
        ({"volume": "/Volumes/a/b/c"}, "MANAGED", "ICEBERG", "no Delta table, but iceberg"),
    ],
)
def test_which_tables_can_be_written(settings: Any, kind: str, form: str, words: str) -> None:
    store = open_connector("databricks", "s", {"host": "https://x", "warehouse_id": "w"} | settings)
    assert isinstance(store, DatabricksConnector)
    details = {"type": kind, "format": form, "location": "s3://acme-lake/t"}
    found = [one.detail for one in store.table_misfits(Table((), details=details), [], [])]
    assert words in found[0] if words else not found, found
