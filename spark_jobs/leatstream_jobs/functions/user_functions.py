"""Makes users' functions known to a session: for a job with their code, for analysis by their types alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leatstream.errors import JobError
from leatstream.model.types import DataType, from_spark, parse_type
from leatstream.plan.job_spec import FunctionSpec
from leatstream_jobs.functions.java_functions import register_java
from leatstream_jobs.functions.user_code import Aggregate, Code, Scalar
from leatstream_jobs.runtime.plan_trees import items, name_of, number
from leatstream_jobs.runtime.worker_python import workers_of_functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RANKS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_DIGITS = dict(zip(_RANKS, (3, 5, 10, 19), strict=True))


_registered: set[str] = set()  # of this process: digests of the sources


def has_run() -> bool:
    """Whether the driver may have run users' code, of which its JVM and Python workers keep what it left."""
    return bool(_registered)


def register(
    spark: SparkSession, functions: Sequence[FunctionSpec], sources: Mapping[str, str], place: Path
) -> None:
    """Register the functions of a job; those in Python run in Spark's workers only, those in Java in its JVM.

    Args:
        spark: the session.
        functions: of the JobSpec.
        sources: digest to text, of a jar to its base64.
        place: directory for jars.

    Raises:
        JobError: job-rejected, a source is not what the JobSpec says.
    """
    _registered.update(spec.digest for spec in functions)
    for spec in functions:
        source = sources.get(spec.digest, "")
        if hashlib.sha256(source.encode()).hexdigest() != spec.digest:
            detail = f"The source of function {spec.function} is not the one that was planned with."
            raise JobError("job-rejected", detail)
        if spec.language == "java":
            register_java(spark, spec, source, place)
            continue
        code = Code(
            spec.function, spec.file, source, spec.handler, spec.arguments, spec.returns, spec.timeout_seconds
        )
        with workers_of_functions(spark):
            _register(spark, spec.name, Aggregate(code) if spec.aggregate else Scalar(code), spec.returns)


def register_shapes(spark: SparkSession, functions: Sequence[Mapping[str, str]]) -> None:
    """Register functions that analysis may name and nothing can run."""
    for function in functions:
        _register(spark, function["name"], _Shape(), function["returns"])


def forget(spark: SparkSession, functions: Sequence[Mapping[str, str]]) -> None:
    """Drop what ``register_shapes`` made."""
    for function in functions:
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS `{function['name']}`")


def misfit(frame: Any) -> dict[str, Any] | None:
    """The first argument of a user's function that does not fit its type, as an analysis failure.

    Args:
        frame: the analyzed JVM DataFrame. Each argument stands in a cast to the type that was declared.
    """
    for given, wanted, start, stop, whole in _arguments(frame.queryExecution().analyzed()):
        if whole is not None and holds(from_spark(wanted), whole):
            continue
        if given != "void" and not fits(from_spark(given), from_spark(wanted)):
            return {
                "condition": "DATATYPE_MISMATCH.FUNCTION_ARGUMENT",
                "message": f"The function takes {from_spark(wanted)} here, not {from_spark(given)}.",
                "sqlstate": "42K09",
                "start": start,
                "stop": stop,
                "fragment": None,
                "parameters": {},
            }
    return None


def fits(given: DataType, wanted: DataType) -> bool:
    """Whether every value of a type is one of another; numbers pass for DOUBLE, as they do in SQL."""
    if given == wanted or (given.kind == wanted.kind and not given.arguments and given.kind != "DECIMAL"):
        return True
    if given.kind == "DECIMAL" or given.kind in _DIGITS:
        if wanted.kind in ("FLOAT", "DOUBLE"):
            return True
        if wanted.kind == "DECIMAL":
            precision, scale = _size(wanted)
            own, fraction = _size(given)
            return precision - scale >= own - fraction and scale >= fraction
        both = given.kind in _DIGITS and wanted.kind in _DIGITS
        return both and _RANKS.index(given.kind) <= _RANKS.index(wanted.kind)
    if (given.kind, wanted.kind) in (("FLOAT", "DOUBLE"), ("DATE", "TIMESTAMP")):
        return True
    if given.kind == wanted.kind and len(given.arguments) == len(wanted.arguments):
        return all(fits(g, w) for g, w in zip(given.arguments, wanted.arguments, strict=True))
    return False


def holds(wanted: DataType, whole: int) -> bool:
    """Whether a type has a whole number that stands in the SQL, be it as narrow as TINYINT."""
    if wanted.kind in _DIGITS:
        most = 1 << (8 << _RANKS.index(wanted.kind)) - 1
        return -most <= whole < most
    if wanted.kind == "DECIMAL":
        precision, scale = _size(wanted)
        most = int(10 ** (precision - scale))
        return -most < whole < most
    return False


def _size(kind: DataType) -> tuple[int, int]:
    if kind.kind in _DIGITS:
        return _DIGITS[kind.kind], 0
    precision, scale = (*kind.parameters, 0)[:2] if kind.parameters else (10, 0)
    return precision, scale


class _Shape:
    """Stands for a function where nothing is run."""

    def __call__(self, *_given: Any) -> Any:
        raise NotImplementedError


def _register(spark: SparkSession, name: str, call: Any, returns: str) -> None:
    from pyspark.sql import functions as F

    # Plain rows, not Arrow: a row costs some microseconds more, and pyarrow is not needed.
    made = F.udf(call, parse_type(returns).spark(), useArrow=False)
    spark.udf.register(name, made)


_Argument = tuple[str, str, int | None, int | None, int | None]


def _arguments(plan: Any) -> Iterator[_Argument]:
    """Of each argument of each user's function in a plan: type given, type wanted, place, its number.

    The last is there for whole numbers that are written as such.
    """
    plans = [plan]
    while plans:
        node = plans.pop()
        plans += items(node.children())
        expressions = items(node.expressions())
        while expressions:
            expression = expressions.pop()
            if name_of(expression) == "PythonUDF":
                yield from _casts(expression)
            expressions += items(expression.children())


def _casts(function: Any) -> Iterator[_Argument]:
    waiting = list(reversed(items(function.children())))
    while waiting:
        expression = waiting.pop()
        if name_of(expression) == "Cast":
            child = expression.child()
            place = expression.origin()
            yield (
                child.dataType().catalogString(),
                expression.dataType().catalogString(),
                number(place.startIndex()),
                number(place.stopIndex()),
                _whole(child),
            )
        else:
            waiting += reversed(items(expression.children()))


def _whole(expression: Any) -> int | None:
    if name_of(expression) == "UnaryMinus":
        below = _whole(expression.child())
        return None if below is None else -below
    written = name_of(expression) == "Literal" and expression.value() is not None
    # A date is a number, too, to Spark.
    whole = written and expression.dataType().catalogString() in ("tinyint", "smallint", "int", "bigint")
    return int(expression.value()) if whole else None
