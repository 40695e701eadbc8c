"""Opens the writer that a JobSpec asks for."""

from __future__ import annotations

from leatstream.errors import JobError
from leatstream.model.extras import install_extra
from leatstream.plan.job_spec import JobSpec
from leatstream.views.base import Table, ViewWriter
from leatstream.views.sqlite_writer import SqliteWriter


def view_writer(spec: JobSpec, password: str | None = None) -> ViewWriter:
    """The writer of a job's view, not opened yet.

    Raises:
        JobError: job-rejected, when the document names no database or its client library is not installed.
    """
    view = spec.sink.view
    if view is None or view.database is None:
        raise JobError("job-rejected", f"The job of {spec.sink.relation} names no database for its view.")
    table = Table.of(spec)
    if view.database.kind == "sqlite":
        return SqliteWriter(view.database.location, table, spec.attempt)
    try:
        from leatstream.views.postgresql_writer import PostgresWriter
    except ImportError:
        raise JobError(
            "job-rejected",
            "Materialized views in PostgreSQL need psycopg where drivers run.",
            hint=install_extra("server"),
        ) from None
    return PostgresWriter(view.database.location, password, table, spec.attempt)
