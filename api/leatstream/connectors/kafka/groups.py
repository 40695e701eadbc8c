"""A query's progress as the offsets of a consumer group, so that Kafka's own lag tools show it.

The group is a copy for people: Spark's checkpoint alone decides where a query goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from leatstream.connectors.kafka.admin import KafkaAdmin
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, TopicPartition

# A cluster that has never had a group, or has just lost a broker, is getting its coordinator ready.
_GETTING_READY = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")
_NO_ANSWER = ("_WAIT_COORD", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_TRANSPORT", "REQUEST_TIMED_OUT")
_AGAIN = 0.2  # seconds
_SLICE = 0.05  # seconds between looks at what was heard
_IDLE = 60.0  # seconds; much longer than any commit takes


def group_of(query: str) -> str:
    """The consumer group of a query."""
    return f"leatstream-{query}"


class Groups:
    """The groups of one cluster's queries; threads may share it, each with queries of its own."""

    def __init__(self, admin: KafkaAdmin, now: Callable[[], float] = time.monotonic) -> None:
        """Nothing is connected yet; ``now`` is a clock that never goes back, in seconds."""
        self._admin = admin
        self._now = now
        self._members: dict[str, _Member] = {}
        self._joining = threading.Lock()

    def write_offsets(self, query: str, topic: str, offsets: Mapping[str, int], timeout: float) -> None:
        """Set the group's offsets of one topic; StoreError when the cluster refuses or does not answer."""
        from confluent_kafka import TopicPartition

        group = group_of(query)
        with self._joining:
            member = self._members.get(group) or _Member(self._admin, group)
            member.used, self._members[group] = self._now(), member
            # A query that has ended says no word here, and a shared driver sees many come and go.
            idle = [one for one, other in self._members.items() if other.used < self._now() - _IDLE]
            left = [self._members.pop(one) for one in idle]
        for other in left:
            other.close()
        places = [TopicPartition(topic, int(partition), offset) for partition, offset in offsets.items()]
        member.commit(places, timeout)

    def forget(self, query: str, timeout: float) -> None:
        """Delete the group; succeeds when it is not there."""
        from confluent_kafka import KafkaException

        group, end = group_of(query), time.monotonic() + timeout
        with self._joining:
            member = self._members.pop(group, None)
        if member is not None:
            member.close()
        while True:
            # A cluster that is away is not asked at all, for the reason that ``_Member`` tells.
            self._admin.metadata(max(0.1, end - time.monotonic()))
            left = end - time.monotonic()
            try:
                asked = self._admin.client.delete_consumer_groups([group], request_timeout=max(0.1, left))
                self._admin.wait(asked, f"delete group {group}", left)
                return
            except KafkaException as error:
                name = error.args[0].name()
                if name == "GROUP_ID_NOT_FOUND":
                    return
                if name not in _GETTING_READY or left < _AGAIN:
                    raise self._admin.rejected(error, f"deleting group {group}") from None
            time.sleep(_AGAIN)


class _Member:
    """Commits offsets of a group as a consumer does, without ever reading.

    The admin client could set them too, but librdkafka ends the whole process where it waits for a group's
    coordinator that has gone away (its issue 4605).

    Attributes:
        used: when it was last asked for, by the clock of its ``Groups``.
    """

    used = 0.0

    def __init__(self, admin: KafkaAdmin, group: str) -> None:
        from confluent_kafka import Consumer

        self._admin, self._group = admin, group
        self._answers: list[tuple[KafkaError | None, list[TopicPartition]]] = []
        settings: dict[str, Any] = {"group.id": group, "enable.auto.commit": False, "on_commit": self._hear}
        self._consumer = Consumer(admin.settings() | settings)

    def commit(self, places: list[TopicPartition], timeout: float) -> None:
        """Commit them; StoreError when the cluster refuses or does not answer."""
        from confluent_kafka import KafkaException

        end, what = time.monotonic() + timeout, f"set the offsets of group {self._group}"
        while True:
            error = self._ask(places, end)
            name = error.name() if error is not None else None
            if name is None:
                return
            if name.endswith("AUTHORIZATION_FAILED"):
                raise self._fault("store-auth-failed", f"the user may not {what}")
            if name not in _NO_ANSWER + _GETTING_READY:
                raise self._admin.rejected(
                    KafkaException(error), f"setting the offsets of group {self._group}"
                )
            if time.monotonic() + _AGAIN > end:
                raise self._fault("store-unreachable", f"no answer to {what} in {timeout:g} s")
            time.sleep(_AGAIN)

    def close(self) -> None:
        """Let go of the cluster."""
        self._consumer.close()

    def _ask(self, places: list[TopicPartition], end: float) -> KafkaError | None:
        """What the cluster has against it, or that it does not answer in time."""
        from confluent_kafka import KafkaError, KafkaException

        wanted, begun = _positions(places), time.monotonic()
        try:
            self._consumer.commit(offsets=places, asynchronous=True)
        except KafkaException as error:
            return error.args[0]  # type: ignore[no-any-return]
        while (left := end - time.monotonic()) > 0:
            self._answers.clear()
            self._consumer.poll(min(_SLICE, left))
            self._admin.raise_if_final(begun)
            for refusal, answered in self._answers:
                # That to an earlier commit, which came too late, tells nothing of this one.
                if _positions(answered) == wanted:
                    return refusal or next((place.error for place in answered if place.error), None)
        return KafkaError(KafkaError._TIMED_OUT)

    def _hear(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        self._answers.append((error, places))

    def _fault(self, code: str, text: str) -> StoreError:
        return StoreError(code, f"Store {self._admin.store}: {text}.")


def _positions(places: list[TopicPartition]) -> set[tuple[str, int, int]]:
    return {(place.topic, place.partition, place.offset) for place in places}
