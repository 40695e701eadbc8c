"""How often Python asks the JVM for a name: a call between the two is dearer than most of what is called."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

pytestmark = pytest.mark.spark


def test_columns_are_made_without_a_search_for_what_makes_them(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def column() -> Any:
        return F.coalesce(F.col("a") + 1, F.lit(2)).cast("string").alias("b")

    column()
    sent: list[str] = []
    plain = GatewayClient.send_command

    def noted(client: Any, command: str, *more: Any, **named: Any) -> Any:
        sent.append(command)
        return plain(client, command, *more, **named)

    monkeypatch.setattr(GatewayClient, "send_command", noted)
    made = column()
    monkeypatch.undo()
    assert [command for command in sent if command.startswith("r\n")] == []
    assert 5 <= len(sent) < 20, "nor is the line noted that has called"
    assert spark.range(1).select(F.lit(1).alias("a")).select(made).first() == ("2",)
