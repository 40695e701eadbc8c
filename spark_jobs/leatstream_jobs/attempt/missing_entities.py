"""Which entity does not exist, a source's or the sink's: Kafka's client only says that a topic does not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from leatstream.connectors.base import Connector
from leatstream.plan.job_spec import JobSpec, StoreRef
from leatstream_jobs.attempt import failure_words as words
from leatstream_jobs.attempt.failures import Failure, Link, sink_gone, source_gone

_LOG = logging.getLogger("leatstream_jobs")
_BY_CLIENTS = ("source-gone", "job-failed")


def with_missing_entity(
    failure: Failure, chain: Sequence[Link], spec: JobSpec, connect: Callable[[StoreRef], Connector]
) -> Failure:
    """The failure, of the entity that its store does not have.

    Args:
        failure: as it is classified by its words.
        chain: what it was classified from.
        spec: of the query.
        connect: opens a store, to ask it. If the store does not answer, the failure stays as it is.
    """
    said = "\n".join(f"{link.name}: {link.message}" for link in chain)
    if failure.code not in _BY_CLIENTS or not any(word in said for word in words.TOPIC_MISSING):
        return failure
    try:
        for source in spec.sources:
            if connect(source.store).incarnation(source.entity) is None:
                return source_gone(source, recreated=False)
        if spec.sink.view is None and connect(spec.sink.store).incarnation(spec.sink.entity) is None:
            return sink_gone(spec.sink)
    except Exception as error:
        _LOG.info("it is not known which topic does not exist: %s", type(error).__name__)
    return failure
