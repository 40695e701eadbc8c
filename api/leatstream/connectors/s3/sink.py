"""Micro-batches into S3, exactly once.

A batch is written in two steps. The tasks send its files as uploads that nobody sees; then the driver notes
all uploads in the checkpoint, and only then completes them, one by one. A batch that is repeated after a
crash finds the note and completes what is left, or finds none, and then nothing of it was ever seen: what an
attempt has sent before is taken back, and the files are sent again. So a file appears once, whole, and is
never changed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from leatstream.connectors.arrow_tasks import ArrowTasks
from leatstream.connectors.aws.errors import code_of
from leatstream.connectors.s3.errors import is_gone
from leatstream.connectors.s3.settings import s3_client
from leatstream.connectors.s3.source import said
from leatstream.connectors.s3.write import SinkPlan, Upload, abort, write_task, written, written_by
from leatstream.connectors.store_marks import marked
from leatstream.connectors.writers import BatchTarget, Written
from leatstream.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_LOG = logging.getLogger("leatstream_jobs")
_TIMEOUT, _ATTEMPTS = 60.0, 4
_KEPT = 2  # notes; a batch that is repeated needs its own only
_DIGITS = 8  # of the checkpoint's id


class S3Sink:
    """Takes Spark's micro-batches."""

    def __init__(self, plan: SinkPlan, target: BatchTarget) -> None:
        self._plan = plan
        self._target = target
        # Spark calls in threads that serve every query of the process.
        self._log = logging.LoggerAdapter(_LOG, {"query_id": target.query_id})
        self._tasks = ArrowTasks()
        self._client: Any = None
        self._notes: _Notes | None = None

    def apply(self, frame: DataFrame, number: int) -> Written:
        """Write one micro-batch; what S3 says is marked, so that the failure can be told.

        Returns:
            The rows and bytes of the files that were sent; nothing where they had been sent before.
        """
        sent = Written()
        with said(self._plan.store, self._plan.config, f"writing to {self._plan.prefix}", "sink"):
            notes = self._opened(frame)
            uploads = notes.find(number)
            if uploads is None:
                uploads = self._send(frame, number)
                sent = sum((Written(upload.rows, upload.size) for upload in uploads), sent)
                notes.put(number, uploads)
                self._complete(uploads, again=False)
            else:
                self._log.info("batch %d was sent before; what is left of it is completed", number)
                # All of the batch is computed, and its state kept, as wherever a batch is repeated.
                frame.write.format("noop").mode("overwrite").save()
                self._complete(uploads, again=True)
            notes.forget(number - _KEPT)
        return sent

    def _opened(self, frame: DataFrame) -> _Notes:
        if self._notes is None:
            self._client = s3_client(self._plan.config, _TIMEOUT, _ATTEMPTS)
            notes = _Notes(frame.sparkSession, self._target)
            self._take_back(notes)
            # Another checkpoint counts batches from 0, and their files are not to replace those of this one.
            self._plan = replace(self._plan, stem=f"{self._plan.stem}-{notes.checkpoint_id()[:_DIGITS]}")
            self._notes = notes
        return self._notes

    def _send(self, frame: DataFrame, number: int) -> list[Upload]:
        plan = self._plan

        def task(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            context = TaskContext.get()
            part = context.partitionId() if context is not None else 0
            yield from written(write_task(plan, number, part, rows))

        return [Upload(**json.loads(row["upload"])) for row in self._tasks.run(frame, task)]

    def _complete(self, uploads: list[Upload], *, again: bool) -> None:
        for upload in uploads:
            parts = [{"ETag": tag, "PartNumber": i} for i, tag in enumerate(upload.parts, 1)]
            place = {"Bucket": self._plan.config.bucket, "Key": upload.key}
            try:
                self._client.complete_multipart_upload(
                    **place, UploadId=upload.upload, MultipartUpload={"Parts": parts}
                )
            except Exception as error:
                if code_of(error) != "NoSuchUpload":
                    raise
                self._check_there(upload)
            else:
                if again:
                    self._touch(upload)

    def _check_there(self, upload: Upload) -> None:
        """An upload is gone when it was completed before; or when somebody has taken it back."""
        try:
            self._client.head_object(Bucket=self._plan.config.bucket, Key=upload.key)
        except Exception as error:
            if not is_gone(error):
                raise
            told = StoreError(
                "store-rejected",
                f"Store {self._plan.store}: file {upload.key} was sent but is not there: its upload was "
                "ended by somebody else, or the file was deleted.",
                hint="Let rules for incomplete uploads wait longer than a query may stand still.",
            )
            raise RuntimeError(marked("sink", told)) from None

    def _touch(self, upload: Upload) -> None:
        """Give a file that comes late the present time: S3 dates it to the beginning of its upload."""
        place = {"Bucket": self._plan.config.bucket, "Key": upload.key}
        self._client.copy_object(**place, CopySource=dict(place), MetadataDirective="REPLACE")

    def _take_back(self, notes: _Notes) -> None:
        """End the uploads that attempts before this one have left and no note tells of."""
        bucket, plan = self._plan.config.bucket, self._plan
        told = notes.uploads()
        try:
            pages = self._client.get_paginator("list_multipart_uploads").paginate(
                Bucket=bucket, Prefix=plan.prefix
            )
            left = [one for page in pages for one in page.get("Uploads", ())]
        except Exception as error:
            # Not every policy allows it; a rule of the bucket's may end them.
            self._log.warning("incomplete uploads could not be listed: %s", code_of(error))
            return
        for one in left:
            own = written_by(self._target.query_id, one["Key"])  # earlier generations' too
            if own and one["UploadId"] not in told:
                abort(self._client, bucket, Upload(one["Key"], one["UploadId"]))


class _Notes:
    """What each batch has sent, in the checkpoint, by Hadoop's file systems.

    A checkpoint that was copied from another query's may have that one's notes; they count for nothing.
    """

    def __init__(self, spark: Any, target: BatchTarget) -> None:
        self._jvm: Any = spark._jvm
        self._checkpoint = target.checkpoint.rstrip("/")
        self._root = f"{self._checkpoint}/files"
        self._query_id = target.query_id
        self._fs = self._path("").getFileSystem(spark._jsc.hadoopConfiguration())
        self._numbers = self._listed()

    def checkpoint_id(self) -> str:
        """Spark's id of a checkpoint from before its first batch on: hex digits, new if it was lost."""
        path = getattr(self._jvm, "org.apache.hadoop.fs.Path")(f"{self._checkpoint}/metadata")
        return str(json.loads(self._read(path))["id"])

    def find(self, number: int) -> list[Upload] | None:
        """The uploads of a batch; None if this query has noted none, so that nothing of it was ever seen."""
        path = self._path(f"{number}.json")
        if not self._fs.exists(path):
            return None
        uploads = [Upload(**item) for item in json.loads(self._read(path))]
        return uploads if uploads and all(written_by(self._query_id, one.key) for one in uploads) else None

    def put(self, number: int, uploads: list[Upload]) -> None:
        """Note a batch, at once or not at all."""
        temporary, final = self._path(f"{number}.tmp"), self._path(f"{number}.json")
        stream = self._fs.create(temporary, True)
        try:
            stream.write(bytearray(json.dumps([asdict(upload) for upload in uploads]).encode()))
            stream.hsync()
        finally:
            stream.close()
        self._fs.delete(final, False)  # another query's, which not every file system replaces
        if not self._fs.rename(temporary, final):
            raise RuntimeError(f"The files of batch {number} could not be noted in the checkpoint.")
        self._numbers.add(number)

    def uploads(self) -> set[str]:
        """The ids of all noted uploads."""
        return {upload.upload for n in self._numbers for upload in self.find(n) or []}

    def forget(self, number: int) -> None:
        """Remove the notes of a batch that is done with, and of those before; some batches have none."""
        for done in [n for n in self._numbers if n <= number]:
            self._fs.delete(self._path(f"{done}.json"), False)
            self._numbers.remove(done)

    def _read(self, path: Any) -> str:
        stream = self._fs.open(path)
        try:
            return str(getattr(self._jvm, "org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _listed(self) -> set[int]:
        root = self._path("")
        if not self._fs.exists(root):
            return set()
        names = [str(status.getPath().getName()) for status in self._fs.listStatus(root)]
        return {int(name[:-5]) for name in names if name.endswith(".json")}

    def _path(self, name: str) -> Any:
        return getattr(self._jvm, "org.apache.hadoop.fs.Path")(f"{self._root}/{name}" if name else self._root)
