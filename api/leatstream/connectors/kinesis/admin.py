"""Asking Kinesis about data streams and changing them; every wait has an end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from leatstream.connectors.aws.errors import code_of, store_error
from leatstream.connectors.entities import Entity
from leatstream.connectors.kinesis.settings import KinesisConfig, kinesis_client
from leatstream.errors import StoreError

T = TypeVar("T")
SHARDS = "topic.shards"
MODE, RETENTION = "stream.mode", "retention.hours"
PROVISIONED, ON_DEMAND = "PROVISIONED", "ON_DEMAND"
DEFAULT_RETENTION = 24  # hours
_SETTLE = 60.0  # seconds: AWS takes ten to thirty to make, change or delete a stream
_LOOK = 0.1


class KinesisAdmin:
    """Kinesis in one region; safe to share between threads."""

    def __init__(self, store: str, config: KinesisConfig) -> None:
        self.store = store
        self.config = config
        self.where = config.endpoint_url or f"region {config.region}"
        self._clients: dict[float, Any] = {}
        self._lock = threading.Lock()

    def call(self, what: str, timeout: float, run: Callable[[Any], T]) -> T:
        """Run one call; StoreError for what AWS or the network says."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return run(self.client(timeout))
        except (BotoCoreError, ClientError) as error:
            raise store_error(self.store, what, error, self.where, timeout) from None

    def client(self, timeout: float) -> Any:
        """The client whose calls end within ``timeout`` seconds."""
        with self._lock:
            if timeout not in self._clients:
                self._clients[timeout] = kinesis_client(self.config, timeout)
            return self._clients[timeout]

    def names(self, timeout: float, limit: int | None = None) -> list[str]:
        """Names of all streams, or of the first ``limit``."""

        def run(client: Any) -> list[str]:
            found: list[str] = []
            more: dict[str, Any] = {} if limit is None else {"Limit": limit}
            while True:
                answer = client.list_streams(**more)
                found.extend(answer["StreamNames"])
                if limit is not None or not answer.get("HasMoreStreams") or not answer["StreamNames"]:
                    return found
                more = {"ExclusiveStartStreamName": found[-1]}

        return self.call("listing streams", timeout, run)

    def entities(self, timeout: float) -> list[Entity]:
        """All streams by name. AWS describes twenty a second: past the time given, only names are told."""
        end = time.monotonic() + timeout / 2
        found: list[Entity] = []
        for name in sorted(self.names(timeout)):
            summary: Mapping[str, Any] | None = {}
            if time.monotonic() < end:
                try:
                    summary = self.summary(name, timeout)
                except StoreError as error:
                    if not error.retryable and error.code != "store-auth-failed":
                        raise
            if summary is not None:
                found.append(entity_of(summary) if summary else Entity(name, {SHARDS: None}))
        return found

    def summary(self, stream: str, timeout: float) -> Mapping[str, Any] | None:
        """AWS's description of a stream; None when it is not there or on its way out."""
        try:
            answer = self.call(
                f"describing stream {stream}", timeout, lambda c: c.describe_stream_summary(StreamName=stream)
            )
        except StoreError as error:
            if error.code == "entity-not-found":
                return None
            raise
        found: Mapping[str, Any] = answer["StreamDescriptionSummary"]
        return None if found["StreamStatus"] == "DELETING" else found

    def create(self, stream: str, shards: int | None, timeout: float) -> bool:
        """Ask for a stream (None shards = on demand) and wait for it; False when there is one already."""
        from botocore.exceptions import ClientError

        wanted: dict[str, Any] = (
            {"StreamModeDetails": {"StreamMode": ON_DEMAND}} if shards is None else {"ShardCount": shards}
        )

        def run(client: Any) -> bool:
            try:
                client.create_stream(StreamName=stream, **wanted)
            except ClientError as error:
                if code_of(error) == "ResourceInUseException":
                    return False
                raise
            return True

        made = self.call(f"creating stream {stream}", timeout, run)
        self.until_active(stream, timeout)
        return made

    def retain(self, stream: str, old: int, new: int, timeout: float) -> None:
        """Change how many hours records are kept."""
        if new == old:
            return
        what = f"changing the retention of stream {stream}"
        hours = {"StreamName": stream, "RetentionPeriodHours": new}
        if new > old:
            self.call(what, timeout, lambda c: c.increase_stream_retention_period(**hours))
        else:
            self.call(what, timeout, lambda c: c.decrease_stream_retention_period(**hours))
        self.until_active(stream, timeout)

    def reshard(self, stream: str, shards: int, timeout: float) -> None:
        """Change the number of shards and wait until it is so."""
        arguments = {"StreamName": stream, "TargetShardCount": shards, "ScalingType": "UNIFORM_SCALING"}
        self.call(
            f"changing the shards of stream {stream}", timeout, lambda c: c.update_shard_count(**arguments)
        )
        self.until_active(stream, timeout)

    def switch_mode(self, stream: str, arn: str, mode: str, timeout: float) -> None:
        """Change between provisioned and on demand."""
        arguments = {"StreamARN": arn, "StreamModeDetails": {"StreamMode": mode}}
        self.call(
            f"changing the mode of stream {stream}", timeout, lambda c: c.update_stream_mode(**arguments)
        )
        self.until_active(stream, timeout)

    def delete(self, stream: str, timeout: float) -> None:
        """Delete a stream and wait until it is gone; does nothing where there is none."""
        from botocore.exceptions import ClientError

        def run(client: Any) -> None:
            try:
                client.delete_stream(StreamName=stream, EnforceConsumerDeletion=True)
            except ClientError as error:
                if code_of(error) != "ResourceInUseException":  # it is being deleted
                    raise

        def gone() -> bool:
            try:
                self.call("", timeout, lambda c: c.describe_stream_summary(StreamName=stream))
            except StoreError as error:
                if error.code == "entity-not-found":
                    return True
                raise
            return False

        try:
            self.call(f"deleting stream {stream}", timeout, run)
        except StoreError as error:
            if error.code == "entity-not-found":
                return
            raise
        self._until(gone, f"stream {stream} as deleted", timeout)

    def until_active(self, stream: str, timeout: float) -> None:
        """Wait until AWS has done what was asked of a stream."""

        def active() -> bool:
            found = self.summary(stream, timeout)
            return found is not None and found["StreamStatus"] == "ACTIVE"

        self._until(active, f"stream {stream} as active", timeout)

    def _until(self, condition: Callable[[], bool], what: str, timeout: float) -> None:
        bound = max(timeout, _SETTLE)
        end, pause = time.monotonic() + bound, _LOOK
        while not condition():
            if time.monotonic() >= end:
                raise StoreError(
                    "store-unreachable",
                    f"Store {self.store}: Kinesis does not show {what} after {bound:g} s.",
                    hint="Try again; AWS may still be at it.",
                )
            time.sleep(pause)
            pause = min(1.0, pause * 2)


def entity_of(summary: Mapping[str, Any]) -> Entity:
    """The catalog's face of a stream: shards (None on demand), and what differs from AWS's defaults."""
    on_demand = summary.get("StreamModeDetails", {}).get("StreamMode") == ON_DEMAND
    configs: dict[str, str] = {MODE: ON_DEMAND} if on_demand else {}
    if summary["RetentionPeriodHours"] != DEFAULT_RETENTION:
        configs[RETENTION] = str(summary["RetentionPeriodHours"])
    shards = None if on_demand else int(summary["OpenShardCount"])
    return Entity(summary["StreamName"], {SHARDS: shards}, configs)
