"""What drivers send. A driver runs users' code, so its word is checked like any other client's.

Members that are not named here pass: a driver may be newer than its server, or older.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_Id = Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9_-]*$")]
_Whole = Annotated[int, Field(ge=0, lt=2**63)]
_Number = Annotated[float, Field(allow_inf_nan=False)]


def _storable(text: str) -> str:
    """Without lone surrogates and NUL, which the catalog cannot hold; log lines may have them."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "?")


_Text = Annotated[str, AfterValidator(_storable)]


class _Report(BaseModel):
    model_config = ConfigDict(extra="allow")


class Use(_Report):
    """What a driver uses of its machine."""

    memory_bytes: _Whole | None = None
    heap_bytes: _Whole | None = None
    cpu_seconds_total: Annotated[float, Field(ge=0, lt=1e12)] | None = None


class Poll(_Report):
    """A driver asks for work."""

    use: Use | None = None

    pid: int = 0
    state: Literal["warming", "idle"] = "idle"
    running: dict[_Id, _Whole] = {}


class Slot(_Report):
    """A replication slot of a source."""

    name: _Text | None = None
    lag_bytes: int | None = None
    kept_bytes: int | None = None
    left_bytes: int | None = None


class SourceFigures(_Report):
    """How far a source has been read."""

    relation: _Text
    entity: _Text
    end_offsets: dict[_Text, int | _Text] | None = None
    lag: int | None = None
    partition_lags: dict[_Text, int] | None = None
    slot: Slot | None = None


class Figures(_Report):
    """A job's progress."""

    batch_id: int | None = None
    input_rows_total: int | None = None
    output_rows_total: int | None = None
    input_rows_per_second: _Number | None = None
    processed_rows_per_second: _Number | None = None
    output_rows_per_second: _Number | None = None
    batch_duration_ms: _Number | None = None
    watermark: Annotated[str, Field(pattern=r"^\d{4,6}-\d\d-\d\dT[0-9:.]+Z?$")] | None = None
    skipped_rows_total: int | None = None
    untimely_rows_total: int | None = None
    late_rows_total: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    batch_limit: int | None = None
    sources: list[SourceFigures] = []


class RecordPlace(_Report):
    """Where a record is."""

    entity: _Text
    partition: _Text
    offset: _Text


class JobFault(_Report):
    """Why a job, or a SELECT, has failed."""

    code: _Text
    detail: _Text
    retryable: bool = False
    condition: _Text | None = None
    newest_attempt: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    shown: _Text | None = None
    record: RecordPlace | None = None
    columns: list[_Text] | None = None
    span: tuple[_Whole, _Whole] | None = None


class Pulse(_Report):
    """When the query last did something, and what it waits for."""

    age_seconds: Annotated[float, Field(ge=0, lt=1e9)] = 0.0
    rhythm_seconds: Annotated[float, Field(ge=0, lt=1e9)] | None = None
    waits_for: _Text | None = None
    lag_age_seconds: Annotated[float, Field(ge=0, lt=1e9)] | None = None


class Beat(_Report):
    """A driver reports on a query."""

    query_id: _Id
    attempt: _Whole
    fencing_token: _Id
    state: Literal["starting", "running", "stopping", "stopped", "failed", "completed"]
    error: JobFault | None = None
    progress: Figures | None = None
    pulse: Pulse | None = None
    use: Use | None = None
    free: bool = False
    first_batch: bool = False
    reached: dict[_Text, Any] | None = None
    log: list[_Text] = []


class AnalyzedFigure(BaseModel):
    """A column as Spark's analyzer types it."""

    name: str
    type: str
    nullable: bool


class AnalysisFault(_Report):
    """What Spark's analyzer refuses."""

    condition: str
    message: str
    sqlstate: str | None = None
    start: int | None = None
    stop: int | None = None
    fragment: str | None = None
    parameters: dict[str, str] = {}
    more: Annotated[list[AnalysisFault], Field(max_length=1000)] | None = None


class Analysis(_Report):
    """The analyzer's answer: columns or a failure."""

    columns: list[AnalyzedFigure] = []
    failure: AnalysisFault | None = None


class Rows(_Report):
    """Rows of a SELECT."""

    select: _Id
    sequence: _Whole
    rows: list[tuple[Literal["+I", "+U", "-D"], str]] = []
    error: JobFault | None = None


class SecretsWanted(_Report):
    """Secret references to resolve."""

    references: Annotated[list[_Text], Field(max_length=1000)] = []
    query_id: _Id | None = None


class SourcesWanted(_Report):
    """Function sources to send, by digest."""

    digests: Annotated[list[_Text], Field(max_length=1000)] = []
    query_id: _Id | None = None
