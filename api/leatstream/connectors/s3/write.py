"""A task's rows into files that nobody sees yet: multipart uploads, sent but not completed.

Imported by ``s3.sink`` and by Spark's Python workers only. An upload that is not completed does not exist
for readers; the driver completes those of a batch once all its tasks are done.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from leatstream.connectors.s3.options import Options
from leatstream.connectors.s3.path_columns import NOWHERE
from leatstream.connectors.s3.settings import S3Config, s3_client
from leatstream.connectors.s3.source import said
from leatstream.formats.arrow_types import plain_array
from leatstream.formats.avro_files import AvroFileWriter
from leatstream.formats.plain_values import Unencodable
from leatstream.model.objects import Column

if TYPE_CHECKING:
    import pyarrow as pa

PARTITION = "__leat_part_"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_PART = 8 * 1024 * 1024  # bytes; S3 asks for 5 MiB at least, of all parts but the last
_MOST_OPEN = 32  # files of one task; of more partitions the one longest open is closed
_GROUP = 100_000  # rows of a row group
_TIMEOUT, _ATTEMPTS = 60.0, 4


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """What a task needs to know.

    Attributes:
        prefix: of the entity's keys.
        stem: of every file's name in this query generation; behind it stands which checkpoint counts batches.
        columns, schema: of the rows; what Avro is written by.
    """

    store: str
    config: S3Config
    prefix: str
    stem: str
    value_format: str
    options: Options
    columns: tuple[Column, ...] = ()
    schema: str | None = None


@dataclass(slots=True)
class Upload:
    """A file that is sent, to be completed by the driver."""

    key: str
    upload: str
    rows: int = 0
    size: int = 0
    parts: list[str] = field(default_factory=list)


class _Target:
    """What a writer writes to: gathers bytes and sends them as parts. Enough of a file for pyarrow."""

    closed = False

    def __init__(self, client: Any, bucket: str, key: str) -> None:
        self._client = client
        self._bucket = bucket
        answer = client.create_multipart_upload(Bucket=bucket, Key=key)
        self.upload = Upload(key, answer["UploadId"])
        self._buffer = bytearray()

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Parts are sent when they are large enough."""

    def tell(self) -> int:
        return self.upload.size

    def write(self, data: Any) -> int:
        length = memoryview(data).nbytes
        self._buffer += memoryview(data)
        self.upload.size += length
        if len(self._buffer) >= _PART:
            self._send()
        return length

    def finish(self) -> Upload:
        if self._buffer or not self.upload.parts:
            self._send()
        return self.upload

    def abort(self) -> None:
        abort(self._client, self._bucket, self.upload)

    def _send(self) -> None:
        answer = self._client.upload_part(
            Bucket=self._bucket,
            Key=self.upload.key,
            UploadId=self.upload.upload,
            PartNumber=len(self.upload.parts) + 1,
            Body=bytes(self._buffer),
        )
        self.upload.parts.append(answer["ETag"])
        self._buffer.clear()


class _Writer(Protocol):
    target: _Target

    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> Upload: ...


class _Lines:
    """JSON lines: every value is one."""

    def __init__(self, target: _Target, plan: SinkPlan) -> None:
        self.target = target
        self._packer = zlib.compressobj(wbits=31) if plan.options.compression == "gzip" else None

    def write(self, batch: pa.RecordBatch) -> None:
        values = batch.column(0).to_pylist()
        self.put(b"\n".join(values) + b"\n")
        self.target.upload.rows += len(values)

    def put(self, data: bytes) -> None:
        self.target.write(self._packer.compress(data) if self._packer else data)

    def close(self) -> Upload:
        if self._packer:
            self.target.write(self._packer.flush())
        return self.target.finish()


class _Csv(_Lines):
    """CSV; a text is quoted, so that an empty one differs from NULL."""

    def __init__(self, target: _Target, plan: SinkPlan) -> None:
        super().__init__(target, plan)
        self._delimiter = plan.options.delimiter
        self._header = plan.options.header

    def write(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa
        from pyarrow import csv

        if not self.target.upload.rows and self._header:
            names = ('"' + name.replace('"', '""') + '"' for name in batch.schema.names)
            self.put((self._delimiter.join(names) + "\n").encode())
        out = pa.BufferOutputStream()
        how = csv.WriteOptions(include_header=False, delimiter=self._delimiter, quoting_style="needed")
        csv.write_csv(batch, out, how)
        self.put(out.getvalue().to_pybytes())
        self.target.upload.rows += batch.num_rows


class _Parquet:
    """Parquet with row groups of a good size."""

    def __init__(self, target: _Target, plan: SinkPlan) -> None:
        self.target = target
        self._compression = plan.options.compression
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._writer: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self.target.upload.rows += batch.num_rows
        if self._rows >= _GROUP:
            self._group()

    def close(self) -> Upload:
        self._group()
        self._writer.close()
        return self.target.finish()

    def _group(self) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        if self._writer is None:
            file = pa.PythonFile(self.target, mode="w")
            self._writer = parquet.ParquetWriter(file, table.schema, compression=self._compression)
        self._writer.write_table(table)
        self._waiting, self._rows = [], 0


class _Avro:
    """An Avro container file; what is sent is counted block by block."""

    def __init__(self, target: _Target, plan: SinkPlan) -> None:
        self.target = target
        self._types = [column.type for column in plan.columns]
        codec = "null" if plan.options.compression == "none" else "deflate"
        self._file = AvroFileWriter(target.write, plan.schema or "", plan.columns, codec)

    def write(self, batch: pa.RecordBatch) -> None:
        arrays = (plain_array(batch.column(i), kind) for i, kind in enumerate(self._types))
        try:
            for row in zip(*(array.to_pylist() for array in arrays), strict=True):
                self._file.write(row)
        except Unencodable as error:
            raise RuntimeError(error.marked()) from None
        self.target.upload.rows += batch.num_rows

    def close(self) -> Upload:
        self._file.close()
        return self.target.finish()


_WRITERS: Mapping[str, Any] = {"json": _Lines, "csv": _Csv, "parquet": _Parquet, "avro": _Avro}


def write_task(plan: SinkPlan, batch: int, part: int, rows: Iterator[pa.RecordBatch]) -> Iterator[Upload]:
    """Send a task's rows; gives the uploads when all are sent, and takes them back if anything fails."""
    client = s3_client(plan.config, _TIMEOUT, _ATTEMPTS)
    files = _Files(client, plan, batch, part)
    try:
        with said(plan.store, plan.config, f"writing to {plan.prefix}", "sink"):
            for rowbatch in rows:
                for directory, some in _parted(rowbatch, plan):
                    files.write(directory, some)
            found = files.close()
    except BaseException:
        files.abort()
        raise
    yield from found


class _Files:
    """The open files of a task, one for each directory, and those that are full."""

    def __init__(self, client: Any, plan: SinkPlan, batch: int, part: int) -> None:
        self._client = client
        self._plan = plan
        self._name = f"{plan.stem}-b{batch:08d}-p{part:05d}"
        self._open: dict[str, _Writer] = {}
        self._done: list[Upload] = []
        self._begun = 0

    def write(self, directory: str, rows: pa.RecordBatch) -> None:
        writer = self._open.get(directory) or self._begin(directory)
        writer.write(rows)
        if writer.target.upload.size >= self._plan.options.file_bytes:
            self._done.append(self._open.pop(directory).close())

    def close(self) -> list[Upload]:
        for directory in list(self._open):
            self._done.append(self._open.pop(directory).close())
        return self._done

    def abort(self) -> None:
        for writer in self._open.values():
            writer.target.abort()
        for upload in self._done:
            abort(self._client, self._plan.config.bucket, upload)

    def _begin(self, directory: str) -> _Writer:
        if len(self._open) >= _MOST_OPEN:
            first = next(iter(self._open))
            self._done.append(self._open.pop(first).close())
        plan, number = self._plan, f"-{self._begun:04d}" if self._begun else ""
        packed = ".gz" if plan.options.compression == "gzip" else ""
        key = f"{plan.prefix}{directory}{self._name}{number}.{plan.value_format}{packed}"
        self._begun += 1
        target = _Target(self._client, plan.config.bucket, key)
        writer: _Writer = _WRITERS[plan.value_format](target, plan)
        self._open[directory] = writer
        return writer


def _parted(batch: pa.RecordBatch, plan: SinkPlan) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows by the directory they go to, in their order; the columns that only tell it left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not batch.num_rows:
        return
    kept = [name for name in batch.schema.names if not name.startswith(PARTITION)]
    rows = batch.select(kept)
    if not plan.options.partition_by:
        yield "", rows
        return
    values = [batch.column(f"{PARTITION}{i}").to_pylist() for i in range(len(plan.options.partition_by))]
    found = [directory(plan.options.partition_by, row) for row in zip(*values, strict=True)]
    texts = pa.array(found, pa.string())
    for name in dict.fromkeys(found):
        yield name, rows.filter(pc.equal(texts, name))


def directory(columns: tuple[str, ...], values: tuple[str | None, ...]) -> str:
    """``column=value/…/``, as Hive, Spark and Athena read it."""
    parts = (
        f"{quote(name, safe='')}={NOWHERE if not value else quote(value, safe=' .:-_')}"
        for name, value in zip(columns, values, strict=True)
    )
    return "/".join(parts) + "/"


def stem(query_id: str, query_name: str, generation: int) -> str:
    """What the names of a query's files begin with."""
    return f"{_UNSAFE.sub('_', query_name)[:60]}{_mark(query_id)}{generation}"


def written_by(query_id: str, key: str) -> bool:
    """Whether a file is this query's, whatever it was called when it wrote it."""
    return _mark(query_id) in key.rsplit("/", 1)[-1]


def _mark(query_id: str) -> str:
    return f"-{query_id[-8:]}-g"


def abort(client: Any, bucket: str, upload: Upload) -> None:
    """Cancel an upload; if that fails, the next attempt of the query does it."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        client.abort_multipart_upload(Bucket=bucket, Key=upload.key, UploadId=upload.upload)
    except (BotoCoreError, ClientError):
        return


def written(uploads: Iterator[Upload]) -> Iterator[pa.RecordBatch]:
    """The uploads as rows for the driver."""
    import pyarrow as pa

    texts = [json.dumps(asdict(upload)) for upload in uploads]
    if texts:
        yield pa.record_batch([pa.array(texts, pa.string())], names=["upload"])
