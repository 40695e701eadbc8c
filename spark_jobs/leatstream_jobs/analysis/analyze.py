"""Type-checks SQL with Spark's own analyzer, over empty views, without running anything.

Views are made inside the JVM only: a PySpark DataFrame of no rows would start Python workers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leatstream.model.names import PLAIN
from leatstream_jobs.analysis.plan_faults import nodes_of, plan_faults
from leatstream_jobs.functions.user_functions import forget, misfit, register_shapes
from leatstream_jobs.runtime.plan_trees import name_of, range_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TREE = re.compile(r";\s*\n'?[A-Z+ ].*\Z", re.S)
_CONTEXT = re.compile(r"\n==\s*SQL[^\n]*==.*\Z", re.S)
_HEAD = re.compile(r"^\s*\[([A-Z0-9_.]+)\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: [0-9A-Z]{5}\s*")
_PLACE = re.compile(r"\s*(?:\(line \d+, pos \d+\)|; line \d+ pos \d+;?)")


def analyze(
    spark: SparkSession,
    views: Sequence[Mapping[str, str]],
    sql: str,
    functions: Sequence[Mapping[str, str]] = (),
    places: Sequence[Sequence[int]] = (),
) -> dict[str, Any]:
    """Analyze one query.

    Args:
        spark: the session.
        views: ``{name, ddl}`` each; DDL as ``StructType.fromDDL`` reads it.
        sql: Spark SQL over those views.
        functions: ``{name, returns}`` of the users' functions in it.
        places: where remainders stand whose types are asked for, in place of the query's: first and last
            character each.

    Returns:
        ``{columns: [{name, type, nullable}]}`` or ``{failure: {…}}``, as the protocol has them.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    made: list[str] = []
    try:
        for view in views:
            schema = getattr(jvm, "org.apache.spark.sql.types.StructType").fromDDL(view["ddl"])
            session.createDataFrame(getattr(jvm, "java.util.ArrayList")(), schema).createOrReplaceTempView(
                view["name"]
            )
            made.append(view["name"])
        register_shapes(spark, functions)
        frame = session.sql(sql)
        if functions and (wrong := misfit(frame)) is not None:
            return {"failure": wrong}
        if places:
            return {"columns": _remainders(spark, frame.queryExecution().analyzed(), places)}
        faults = plan_faults(spark, frame.queryExecution().analyzed(), sql)
        if faults:
            return {"failure": faults[0] | {"more": faults[1:]}}
        schema = json.loads(frame.schema().json())
        return {
            "columns": [
                {"name": f["name"], "type": simple_type(f["type"]), "nullable": bool(f["nullable"])}
                for f in schema["fields"]
            ]
        }
    except PySparkException as error:
        return {"failure": failure_of(error)}
    except Py4JJavaError as error:
        return {"failure": _bare("INTERNAL_ERROR", plain_message(str(error.java_exception.getMessage())))}
    finally:
        forget(spark, functions)
        for name in made:
            session.catalog().dropTempView(name)


def _remainders(spark: SparkSession, plan: Any, places: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """The types of the remainders at these places, each named by its place's number."""
    wanted = {(start, stop): index for index, (start, stop) in enumerate(places)}
    found: dict[int, str] = {}
    for node in nodes_of(spark, plan, "BINARY_ARITHMETIC"):
        index = wanted.get(range_of(node) or (-1, -1))
        if index is not None and name_of(node) == "Remainder":
            found[index] = str(node.dataType().catalogString())
    return [{"name": str(index), "type": kind, "nullable": True} for index, kind in sorted(found.items())]


def simple_type(kind: Any) -> str:
    """Spark's JSON form of a type as a simple string; odd field names in backticks, nothing cut short."""
    if isinstance(kind, str):
        return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(kind, kind)
    if kind["type"] == "array":
        return f"array<{simple_type(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{simple_type(kind['keyType'])},{simple_type(kind['valueType'])}>"
    if kind["type"] == "struct":
        parts = (f"{_field_name(f['name'])}:{simple_type(f['type'])}" for f in kind["fields"])
        return f"struct<{','.join(parts)}>"
    return str(kind["type"])


def failure_of(error: Any) -> dict[str, Any]:
    """What the analyzer or the parser said, as ``leatstream.plan.logical.AnalysisFailure``."""
    condition = error.getCondition() or "ANALYSIS_ERROR"
    found = _bare(condition, plain_message(str(error)))
    found["sqlstate"] = error.getSqlState()
    found["parameters"] = {str(k): str(v) for k, v in (error.getMessageParameters() or {}).items()}
    contexts = [c for c in (error.getQueryContext() or []) if c.startIndex() >= 0]
    if contexts:
        # The first is the innermost place; the others are the views around it.
        found |= {
            "start": contexts[0].startIndex(),
            "stop": contexts[0].stopIndex(),
            "fragment": contexts[0].fragment(),
        }
    return found


def plain_message(text: str) -> str:
    """Spark's message without its code, its SQL excerpt and its dump of the plan."""
    text = _TREE.sub("", _CONTEXT.sub("", text))
    text = _PLACE.sub("", _STATE.sub(" ", _HEAD.sub("", text)))
    return " ".join(text.split())


def _bare(condition: str, message: str) -> dict[str, Any]:
    return {
        "condition": condition,
        "message": message,
        "sqlstate": None,
        "start": None,
        "stop": None,
        "fragment": None,
        "parameters": {},
    }


def _field_name(name: str) -> str:
    return name if PLAIN.match(name) else "`" + name.replace("`", "``") + "`"
