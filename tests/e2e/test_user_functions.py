"""Functions from their file to the records they computed, and a failure told with the line."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from java_classes import JOIN, jar

pytestmark = [pytest.mark.stack, pytest.mark.core]
SOURCE = """import os

def tenth(n):
    return None if n is None else 10 // n

def worker():
    return os.getpid()
"""


def test_a_function_in_java_computes(play: Any) -> None:
    topic, out = play.stream("words", "a VARCHAR, b VARCHAR"), play.topic("pairs")
    name = f"{play.name}_pair"
    play.sql(
        f"CREATE FUNCTION_SOURCE {play.name}_jar WITH ('file'='@own.jar');"
        f"CREATE FUNCTION {name}(a VARCHAR, b VARCHAR) RETURNS VARCHAR LANGUAGE JAVA"
        f" WITH ('source.name'='{play.name}_jar', 'class.name'='shop.Join')",
        files={"own.jar": jar(shop__Join=JOIN)},
    )
    problem = play.refused(f"CREATE STREAM bad WITH ('topic'='{out}') AS SELECT {name}(a, 1) AS t FROM words")
    assert problem["errors"][0]["detail"] == "The function takes VARCHAR here, not INTEGER."
    sql = (
        f"CREATE STREAM pairs WITH ('topic'='{out}') AS SELECT {name}(a, b) AS t FROM words"
        " WITH ('starting.position'='earliest')"
    )
    assert play.run("pairs", sql)["status"]["job"]["mode"] == "micro_batch"
    play.produce(topic, [{"a": "x", "b": "y"}, {"a": "z"}])
    assert sorted(row["t"] for row in play.consume(out, 2)) == ["xy", "znull"]


def test_a_function_computes_and_fails_with_its_line(play: Any) -> None:
    topic, out = play.stream("numbers", "n BIGINT"), play.topic("tenths")
    name = f"{play.name}_tenth"
    files = {"mine.py": base64.b64encode(SOURCE.encode()).decode()}
    play.sql(
        f"CREATE FUNCTION_SOURCE {play.name} WITH ('file'='@mine.py');"
        f"CREATE FUNCTION {name}(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON"
        f" WITH ('source.name'='{play.name}', 'handler'='tenth')",
        files=files,
    )
    problem = play.refused(
        f"CREATE STREAM bad WITH ('topic'='{out}') AS SELECT {name}('x') AS t FROM numbers"
    )
    assert problem["errors"][0]["detail"] == "The function takes BIGINT here, not VARCHAR."
    sql = (
        f"CREATE STREAM tenths WITH ('topic'='{out}') AS SELECT n, {name}(n) AS t FROM numbers"
        " WITH ('starting.position'='earliest')"
    )
    body = play.run("tenths", sql)
    assert (body["status"]["state"], body["status"]["job"]["mode"]) == ("running", "micro_batch")
    play.produce(topic, [{"n": 5}, {"n": None}])
    assert sorted(play.consume(out, 2), key=str) == [{"n": 5, "t": 2}, {"n": None, "t": None}]
    assert play.refused(f"DROP FUNCTION {name}")["code"] == "has-dependents"
    play.produce(topic, [{"n": 0}])
    failed = play.wait(f"{play.name}_tenths", "failed")
    error = failed["status"]["error"]
    assert error["detail"] == f"The function {name} failed in line 4 of mine.py: ZeroDivisionError."
    assert error["retryable"] is False
