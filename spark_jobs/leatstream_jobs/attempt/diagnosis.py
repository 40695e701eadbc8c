"""Why a query failed: by its error, or because its JVM has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from leatstream.connectors.base import Connector
from leatstream.plan.job_spec import JobSpec, StoreRef
from leatstream_jobs.attempt.failed_records import with_record_faults
from leatstream_jobs.attempt.failed_values import with_record
from leatstream_jobs.attempt.failures import Failure, Link, chain_of, classify, spark_has_stopped
from leatstream_jobs.attempt.missing_entities import with_missing_entity
from leatstream_jobs.runtime.session import jvm_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from leatstream_jobs.attempt.host import Host

_LOST = "The job's JVM ended by itself (killed, or out of memory)."
_TO_EXIT = 20.0  # seconds that a JVM whose Spark has stopped takes at most
_TO_ANSWER = 1.0
_LOOK = 0.02


class Diagnosis:
    """Finds the failure of one query.

    Args:
        spark: the query's session.
        spec: of the query.
        host: is notified first of a JVM that has ended; what it raises then passes.
        connect: opens a store, to look at the record that a query has failed at.
        breathe: is called now and then while that takes its time.
    """

    def __init__(
        self,
        spark: SparkSession,
        spec: JobSpec,
        host: Host,
        connect: Callable[[StoreRef], Connector],
        breathe: Callable[[], None],
    ) -> None:
        self._spark = spark
        self._spec = spec
        self._host = host
        self._connect = connect
        self._breathe = breathe

    def of_error(self, error: BaseException, spec: JobSpec | None = None) -> Failure:
        """What an error in Python means, which mostly is one of the JVM.

        Args:
            error: what was raised.
            spec: of the query that it came from, where several are one job.
        """
        if self._jvm_is_gone():
            return Failure("driver-lost", _LOST)
        try:
            chain = chain_of(error)
        except Exception:  # the JVM may go while it is being asked
            return Failure("driver-lost", _LOST)
        failure = self.of_chain(chain, spec)
        if spec is None or spec.query_id == self._spec.query_id:
            return failure
        return replace(failure, detail=f"Query {spec.query_name} of the same job: {failure.detail}")

    def of_chain(self, chain: Sequence[Link], spec: JobSpec | None = None) -> Failure:
        """What has failed; not the end of a batch that only the end of the JVM has cut off."""
        if not spark_has_stopped(chain):
            job = spec or self._spec
            found = with_missing_entity(classify(chain, job), chain, job, self._connect)
            failure = with_record_faults(found, job, self._connect)
            return with_record(failure, chain, self._spark, job, self._connect, self._breathe)
        process, end = jvm_process(self._spark), time.monotonic() + _TO_EXIT
        while process is not None and process.poll() is None and time.monotonic() < end:
            time.sleep(_LOOK)
        self._host.jvm_lost()
        return Failure("driver-lost", _LOST)

    def _jvm_is_gone(self) -> bool:
        process = jvm_process(self._spark)
        if process is None:
            return False
        end = time.monotonic() + _TO_ANSWER
        while process.poll() is None and time.monotonic() < end:
            if self._answers():
                return False
            time.sleep(_LOOK)
        self._host.jvm_lost()
        return True

    def _answers(self) -> bool:
        try:
            return bool(self._spark.sparkContext._jsc.sc().applicationId())
        except Exception:
            return False
