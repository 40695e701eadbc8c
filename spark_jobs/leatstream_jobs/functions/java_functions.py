"""Makes functions in Java known to a session: the driver's JVM loads their jar and runs them."""

from __future__ import annotations

import base64
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leatstream.errors import JobError
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import FunctionSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_loaded: dict[str, str] = {}  # of this process's JVM: class to the digest of the jar it came from


def register_java(spark: SparkSession, spec: FunctionSpec, source: str, place: Path) -> None:
    """Register one function.

    Args:
        spark: the session.
        spec: the function.
        source: its jar in base64.
        place: directory for the jar; Spark reads it as long as the session lives.

    Raises:
        JobError: job-rejected, the class cannot be loaded, or the JVM has another version of it.
    """
    from pyspark.errors import PySparkException

    _take(spark, spec, base64.b64decode(source), place)
    # Without it dates and times would come as java.sql's, which follow the machine's time zone.
    spark.conf.set("spark.sql.datetime.java8API.enabled", "true")
    try:
        spark.udf.registerJavaFunction(spec.name, spec.handler, parse_type(spec.returns).spark())
    except PySparkException as error:
        raise _unloadable(spec, error.getCondition() or type(error).__name__) from None
    except Exception as error:
        java: Any = getattr(error, "java_exception", None)
        if java is None:
            raise
        # Of a linkage error the message names classes and versions, of others it may be anything.
        linkage = java.getClass().getSuperclass().getName().endswith(("LinkageError", "ClassFormatError"))
        raise _unloadable(spec, str(java.getMessage()) if linkage else java.getClass().getName()) from None


def _take(spark: SparkSession, spec: FunctionSpec, jar: bytes, place: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(jar)) as archive:
        names = [n for n in archive.namelist() if n.endswith(".class") and not n.startswith("META-INF/")]
    if any(_loaded.get(name, spec.digest) != spec.digest for name in names):
        detail = (
            f"Function {spec.function} brings another version of a class that another function of the same "
            "job has brought, and a JVM takes one. Build both functions' jars with the same version."
        )
        raise JobError("job-rejected", detail)
    path = place / f"{spec.digest}.jar"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jar)
    spark.sql(f"ADD JAR '{path.resolve().as_uri()}'")
    _loaded.update(dict.fromkeys(names, spec.digest))


def _unloadable(spec: FunctionSpec, why: str) -> JobError:
    detail = f"The class {spec.handler} of function {spec.function} cannot be loaded: {why}."
    return JobError("job-rejected", detail)
