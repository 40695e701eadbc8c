"""One Spark for all tests that need no driver of their own: a JVM takes seconds to start and half a gigabyte."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from driver_variables import driver_variables
from pyspark.sql import SparkSession

from leatstream_jobs.runtime.session import jvm_process, start_session


@pytest.fixture(scope="session")
def spark_application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The driver's own settings, in a JVM that ends with the run. Tests take ``spark``, a session in it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in driver_variables().items():
            patch.setenv(name, value)
        # Hundreds of queries pass through it; a driver has 25 at most.
        patch.setenv("LEATSTREAM_DRIVER_MEMORY", "1g")
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
            patch.setenv(name, "")
        session = start_session(tmp_path_factory.mktemp("spark"), 2)
        gateway, process = session.sparkContext._gateway, jvm_process(session)
        yield session
        session.stop()
        gateway.shutdown()
        process.stdin.close()
        process.wait(30)
        type(session.sparkContext)._gateway = type(session.sparkContext)._jvm = None


@pytest.fixture(scope="module")
def spark(spark_application: SparkSession) -> SparkSession:
    """A session of the module's own: settings and temporary views of others are not seen in it."""
    return spark_application.newSession()
