"""Sample page views into a Kinesis stream, beside those that go to Kafka."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from leatstream.dev import local_kinesis
from leatstream.errors import StackError, sentence

if TYPE_CHECKING:
    from leatstream.dev.samples import Sample

BATCH = 100
LINGER = 0.2  # seconds that a record waits for others
CREATE_TIMEOUT = 30.0


class KinesisOutlet:
    """Collects records for one stream and sends them, many in a request."""

    def __init__(self, endpoint_url: str, stream: str, shards: int) -> None:
        """Describe it.

        Args:
            endpoint_url: of the local Kinesis.
            stream: its name; made by ``open`` if it does not exist.
            shards: of a new stream.
        """
        self._endpoint = endpoint_url
        self._stream = stream
        self._shards = shards
        self._client: Any = None
        self._waiting: list[dict[str, Any]] = []
        self._oldest = 0.0

    def open(self) -> None:
        """Make the stream unless it is there, and wait until it takes records.

        Raises:
            StackError: ``part-failed`` with the reason.
        """
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        self._client = boto3.client(
            "kinesis",
            region_name=local_kinesis.REGION,
            endpoint_url=self._endpoint,
            aws_access_key_id=local_kinesis.ACCESS_KEY_ID,
            aws_secret_access_key=local_kinesis.SECRET_ACCESS_KEY,
        )
        try:
            if self._stream not in self._client.list_streams()["StreamNames"]:
                self._client.create_stream(StreamName=self._stream, ShardCount=self._shards)
            waiter = self._client.get_waiter("stream_exists")
            waiter.wait(StreamName=self._stream, WaiterConfig={"Delay": 1, "MaxAttempts": CREATE_TIMEOUT})
        except (BotoCoreError, ClientError) as error:
            raise StackError(
                "part-failed",
                sentence(f"The stream {self._stream} cannot be created in the local Kinesis: {error}"),
            ) from error

    def put(self, sample: Sample) -> None:
        """Take a record; sends what has come together.

        Raises:
            Exception: of boto3, when a request fails; the records of that request are gone.
        """
        if not self._waiting:
            self._oldest = time.monotonic()
        data = json.dumps(sample.value, separators=(",", ":")).encode()
        self._waiting.append({"Data": data, "PartitionKey": sample.key})
        if len(self._waiting) >= BATCH or time.monotonic() - self._oldest >= LINGER:
            self.flush()

    def flush(self) -> None:
        """Send what waits."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._client.put_records(StreamName=self._stream, Records=waiting)
